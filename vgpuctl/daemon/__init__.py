"""Keeps the current shift."""
