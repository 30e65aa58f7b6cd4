"""The checks that refuse a wish before anything is touched."""
