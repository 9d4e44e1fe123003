"""Files of the workspace. Each look at a block gives a new link, and a link dies after a while."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import struct
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

from sendonce.errors import BadInput
from sendonce.sandbox.http_server import Reply, Request

PREFIX = "/notion-files/"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
}


class Files:
    """``seconds`` is how long a link lives; Notion's live an hour."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self._directory = directory / "notion-files"
        self._seconds = seconds
        self._key = secrets.token_bytes(16)
        self.base_url = ""

    def put(self, name: str, content: bytes) -> None:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} is no good name for a file: letters, digits, dots and dashes.")
        self._directory.mkdir(exist_ok=True)
        (self._directory / name).write_bytes(content)

    def link(self, name: str) -> dict[str, str]:
        expires = time.time() + self._seconds
        moment = (
            datetime.fromtimestamp(expires, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
        signature = self._signature(name, f"{expires:.3f}")
        query = f"expires={expires:.3f}&signature={signature}"
        return {"url": f"{self.base_url}{PREFIX}{name}?{query}", "expiry_time": moment}

    def answer(self, request: Request) -> Reply:
        """The file; 403 in XML, as S3 answers, to a link that has died or was made up."""
        name = request.path.removeprefix(PREFIX)
        asked = request.parameters()
        expires = asked.get("expires", "")
        good = hmac.compare_digest(self._signature(name, expires), asked.get("signature", ""))
        if not good or not _NAME.fullmatch(name) or float(expires) < time.time():
            body = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
            return Reply(403, body, content_type="application/xml")
        kind = _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
        return Reply(200, (self._directory / name).read_bytes(), content_type=kind)

    def _signature(self, name: str, expires: str) -> str:
        return hmac.new(self._key, f"{name}\n{expires}".encode(), hashlib.sha256).hexdigest()[:32]


def striped_png(width: int, height: int) -> bytes:
    """A small picture to look at: stripes in two blues."""
    rows = b"".join(
        b"\x00" + bytes(0 if (column // 24 + row // 24) % 2 else 1 for column in range(width))
        for row in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = b"\x1d\x4e\x89\x00\xb2\xca"
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
