"""One module a question; each gives findings."""
