"""The managed objects as clients read them: the inventory tree, properties and history."""
