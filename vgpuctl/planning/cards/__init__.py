"""Which vGPUs fit on which cards, and who must leave before whom."""
