"""Kubernetes: the only package that knows the kubernetes library, and loads it only when it is needed."""
