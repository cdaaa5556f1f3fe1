"""The kernel: every release goes through it."""
