"""Commands of door B."""
