"""Private fits of models of many terms."""
