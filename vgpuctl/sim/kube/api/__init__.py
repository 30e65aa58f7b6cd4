"""The API server: requests, checks, lists, watches and tables."""
