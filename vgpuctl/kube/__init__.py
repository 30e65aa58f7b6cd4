"""Kubernetes: the only room that knows the kubernetes package, and loads it only when it is needed."""
