"""How an exchange over HTTP can end without an answer."""

from __future__ import annotations


class NoAnswer(Exception):
    """The request was written, at least in part, and no whole answer came: it may have been carried out."""
