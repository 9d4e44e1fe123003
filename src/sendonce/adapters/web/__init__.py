"""The open web: addresses of sites, and what their pages say."""
