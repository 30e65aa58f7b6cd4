"""Which vGPUs fit on which cards, and which VMs must leave a card before others start on it."""
