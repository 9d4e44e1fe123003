"""What an image is, by its first bytes: what servers and file names say about it is not believed.

SVG is not among them: it is a program, and Gmail does not show it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageHead:
    content_type: str
    width: int
    height: int


def recognise(data: bytes) -> ImageHead | None:
    """The type and size in pixels of a PNG, JPEG, GIF or WebP; None for anything else, or a broken one."""
    found = _png(data) or _gif(data) or _jpeg(data) or _webp(data)
    return found if found and found.width > 0 and found.height > 0 else None


def _png(data: bytes) -> ImageHead | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    return ImageHead("image/png", _big(data[16:20]), _big(data[20:24]))


def _gif(data: bytes) -> ImageHead | None:
    if data[:6] not in (b"GIF87a", b"GIF89a") or len(data) < 13:
        return None
    return ImageHead("image/gif", _little(data[6:8]), _little(data[8:10]))


def _jpeg(data: bytes) -> ImageHead | None:
    """ITU T.81: segments up to the frame header (SOF), which has the size."""
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # fill byte
            place += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return ImageHead(
                "image/jpeg", _big(data[place + 7 : place + 9]), _big(data[place + 5 : place + 7])
            )
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:  # no length
            place += 2
        else:
            place += 2 + max(2, _big(data[place + 2 : place + 4]))
    return None


def _webp(data: bytes) -> ImageHead | None:
    """RFC 9649: a RIFF file with a lossy, a lossless or an extended first chunk."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            size = _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L" if data[20] == 0x2F:
            bits = _little(data[21:25])
            size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            size = _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case _:
            return None
    return ImageHead("image/webp", *size)


def _big(number: bytes) -> int:
    return int.from_bytes(number, "big")


def _little(number: bytes) -> int:
    return int.from_bytes(number, "little")
