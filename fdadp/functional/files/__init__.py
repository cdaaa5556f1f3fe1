"""Curves in text files."""
