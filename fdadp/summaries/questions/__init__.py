"""Questions about columns of numbers and labels, and their noisy answers."""
