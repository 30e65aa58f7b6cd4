"""SOAP: requests, replies, faults, sessions and privileges."""
