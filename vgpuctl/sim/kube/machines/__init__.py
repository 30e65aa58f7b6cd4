"""The machines inside VMs: their kubelets, nodes and pods."""
