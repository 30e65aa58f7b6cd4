"""The property collector: filters, the objects that they select, and the changes of those."""
