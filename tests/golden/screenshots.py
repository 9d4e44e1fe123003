"""``python -m tests.golden.screenshots`` draws the images of docs/images with a headless Chromium.

Not part of the tests: Chromium is 300 MB. On Debian: apt-get install chromium fonts-noto-color-emoji
"""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from base64 import b64encode
from pathlib import Path

from sendonce.domain.mailouts.rendering import Hosted, render
from tests.golden.sample_letter import IMAGE, SAMPLE_SUBJECT, sample_blocks
from tests.golden.support import built_html

IMAGES = Path(__file__).parents[2] / "docs" / "images"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
# Blink's PreferredColorScheme: 0 is dark, 1 is light.
SHOTS = {
    "letter-light.png": (680, 1710, 1),
    "letter-dark.png": (680, 1710, 0),
    "letter-narrow.png": (500, 1790, 1),
}


def image(width: int = 1104, height: int = 400) -> str:
    """A sunrise over a field, as a data: URL: Chromium is to load nothing from anywhere."""
    rows = []
    for y in range(height):
        sky = y / height
        row = bytearray(b"\0")
        for x in range(width):
            sun = (x - width * 0.7) ** 2 + (y - height * 0.55) ** 2 < 70**2
            field = y > height * 0.66 + 16 * math.sin(x / 150)
            row += bytes((255, 214, 110) if sun and not field else (196, 150, 64) if field else _sky(sky))
        rows.append(bytes(row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return "data:image/png;base64," + b64encode(png).decode()


def _sky(height: float) -> tuple[int, int, int]:
    return (int(120 + 130 * height), int(170 + 20 * height), int(220 - 90 * height))


def main(chromium: str) -> None:
    rendered = render(sample_blocks(), title=SAMPLE_SUBJECT, hosted={IMAGE: Hosted(image(), 1104)})
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "letter.html"
        page.write_text(built_html(rendered.html), encoding="utf-8")
        for name, (width, height, scheme) in SHOTS.items():
            command = [
                chromium,
                *FLAGS,
                f"--user-data-dir={directory}/{name}.profile",
                f"--window-size={width},{height}",
                f"--blink-settings=preferredColorScheme={scheme}",
                f"--screenshot={IMAGES / name}",
                page.as_uri(),
            ]
            subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    found = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("Chromium is not installed. Name it: python -m tests.golden.screenshots /path/to/chromium")
    main(found)
