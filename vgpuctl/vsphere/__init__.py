"""vCenter: the only room that knows pyVmomi, and loads it only when it is needed."""
