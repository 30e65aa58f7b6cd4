"""The managed objects as clients read them: the inventory tree and properties."""
