"""What campaigns do."""
