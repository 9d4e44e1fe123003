"""Who answers at a port that does not greet as a mail server does.

A server that expects TLS from the start says nothing until it gets it, and so does one that speaks HTTP.
Without a question we would wait for its greeting until the time limit, and could not say what is wrong.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

_TLS_RECORDS = (b"\x16\x03", b"\x15\x03")  # a handshake or an alert, of any version since SSL 3


async def protocol_at(host: str, port: int, within: float) -> str | None:
    """What answers the first words of a TLS client, over a connection of its own; None if nothing we know."""
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_client_hello(host))
                answer = await reader.read(64)
            finally:
                writer.transport.abort()
    except OSError:
        return None
    if answer.startswith(_TLS_RECORDS):
        return "TLS"
    return "HTTP" if answer.startswith(b"HTTP/") else None


def _client_hello(host: str) -> bytes:
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with suppress(ssl.SSLWantReadError):  # the server's answer never comes here
        client.do_handshake()
    return outgoing.read()
