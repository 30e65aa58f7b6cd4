"""Hosts, cards, VMs and tasks in virtual time, without any wire."""
