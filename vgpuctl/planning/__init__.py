"""Fleet + wish → plan, or a refusal that says why. Pure functions."""
