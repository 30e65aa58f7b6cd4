"""Turns a fleet and a wish into a plan, or into a refusal that says why. Pure functions."""
