"""Private rows: where they are kept, and how they are read."""
