"""The room `prospecting` on SQL."""
