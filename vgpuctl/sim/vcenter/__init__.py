"""A simulated vCenter: its physics (`estate`) apart from its protocol (`app`)."""
