"""What `status` shows: for people, as a document, and live."""
