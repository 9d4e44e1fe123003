"""Campaigns on SQL."""
