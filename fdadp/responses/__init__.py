"""Responses: how what is explained becomes numbers, and how predicted numbers become what they are of."""
