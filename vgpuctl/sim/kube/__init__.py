"""A simulated Kubernetes: a pure world in virtual time, and the REST API in front of it."""
