"""Commands of campaigns."""
