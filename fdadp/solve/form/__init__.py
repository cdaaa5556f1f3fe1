"""The rows of a model of many terms, and sums over them."""
