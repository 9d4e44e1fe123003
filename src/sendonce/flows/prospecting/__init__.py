"""What prospecting does, step by step."""
