"""The plan of a private fit: how its budget is shared."""
