"""What can be asked of a fitted model of many terms."""
