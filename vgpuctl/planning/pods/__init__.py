"""Which pods leave a node, which stay or hold a switch back, and what their budgets allow."""
