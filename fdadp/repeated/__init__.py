"""Several curves a person: sums of one pass, covariances of two levels by REML, effects of persons, components."""
