"""A simulated vCenter and a simulated Kubernetes: real servers on loopback over one small world."""
