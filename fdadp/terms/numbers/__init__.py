"""Terms of numbers and labels."""
