"""Saved models without pickles: the container, atomic writing, JSON, and labels of classes."""
