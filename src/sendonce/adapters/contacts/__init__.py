"""Contacts that a page of the web shows, read without running it."""
