"""The property collector: filters, what they select, and what has changed under them."""
