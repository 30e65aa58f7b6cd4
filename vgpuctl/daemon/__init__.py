"""Keeps the shift of the hour."""
