"""Terms of curves."""
