"""Controllers and the scheduler: what makes the cluster move."""
