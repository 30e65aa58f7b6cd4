"""vCenter: the only package that knows pyVmomi, and loads it only when it is needed."""
