"""Carries a plan out: starts what is ready, waits for changes, retries, gives up, goes back. Knows ports, no vendor."""
