"""Carries a plan out: starts ready steps, waits for changes, retries, gives up, goes back. Knows ports, no vendor."""
