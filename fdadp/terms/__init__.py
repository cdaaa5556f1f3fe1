"""What a covariate contributes to a response: rows of features, penalties, and what of them is identified."""
