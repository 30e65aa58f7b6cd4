"""SOAP: requests, answers, faults, sessions and rights."""
