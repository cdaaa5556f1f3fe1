"""Terms of private fits, in coordinates that are white under the public prior."""
