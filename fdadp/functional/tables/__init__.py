"""Tables of curves, numbers and labels, as users have them."""
