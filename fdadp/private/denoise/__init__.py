"""What noisy releases say: post-processing, which costs no privacy."""
