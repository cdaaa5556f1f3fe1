"""Private choice among models: each is tried on some persons and judged on the others, within one budget."""
