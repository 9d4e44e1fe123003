"""Door B: searches, companies and their contacts."""
