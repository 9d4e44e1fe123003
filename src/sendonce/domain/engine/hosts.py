"""Which hosts are this machine itself."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether nothing that is sent there leaves this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_loopback_url(url: str) -> bool:
    """Whether an address leads nowhere on any other machine. RFC 6761 §6.3 has names below localhost, too."""
    host = urlsplit(url).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")
