"""Private mean and covariance of curves."""
