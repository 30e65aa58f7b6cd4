"""Managed objects as clients read them: the tree, properties and history."""
