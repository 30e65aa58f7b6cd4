"""A simulated vCenter: its physics apart from its API."""
