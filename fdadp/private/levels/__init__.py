"""Private covariances: how far out persons lie, moments clipped there, and both levels of repeated curves."""
