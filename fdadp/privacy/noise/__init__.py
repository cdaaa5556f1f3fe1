"""Sources of noise."""
