"""The releases of a private fit, and the mechanisms that make them."""
