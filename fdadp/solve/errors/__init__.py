"""What is known about a fit: standard errors, tests, residual variance."""
