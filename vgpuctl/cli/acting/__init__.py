"""Commands that change something, and what a person sees meanwhile."""
