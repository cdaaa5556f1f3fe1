"""Private fits of the additive model: everything here sees public values and noisy releases only."""
