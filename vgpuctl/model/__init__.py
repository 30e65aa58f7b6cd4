"""What is true and what is wanted: frozen data, no I/O, no clock."""
