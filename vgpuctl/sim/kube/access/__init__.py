"""Users of the simulated Kubernetes, and what they may do: tokens, impersonation, RBAC and reviews."""
