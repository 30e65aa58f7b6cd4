"""What refuses a wish before anything is touched."""
