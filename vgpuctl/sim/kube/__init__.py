"""A simulated Kubernetes: a world in virtual time, and the REST API for it."""
