"""The additive model of one curve on another."""
