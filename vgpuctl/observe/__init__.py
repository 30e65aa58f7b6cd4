"""Where vCenter and Kubernetes meet: their streams become one fleet, and requests go to the right server."""
