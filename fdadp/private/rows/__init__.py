"""What a private fit computes from one person's rows."""
