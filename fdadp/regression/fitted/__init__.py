"""The fitted model of many terms, and questions to it."""
