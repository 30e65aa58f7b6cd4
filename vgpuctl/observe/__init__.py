"""Where vCenter and Kubernetes meet: their streams become one fleet, and requests go to the server they concern."""
