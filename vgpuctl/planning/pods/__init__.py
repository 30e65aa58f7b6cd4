"""Which pods leave a node, which stay, and what their budgets allow."""
