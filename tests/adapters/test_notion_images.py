"""Images are copied at once, checked by their bytes, and fetched from nowhere they should not be."""

from __future__ import annotations

import hashlib
import ssl
import struct
import threading
import time
import zlib
from pathlib import Path

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.images.copies import MOST_BYTES, ImageCopy, copy_image
from sendonce.adapters.images.recognition import recognise
from sendonce.adapters.notion.pages import read_blocks
from sendonce.adapters.web.public_fetch import FetchRefused, FetchRules, fetch, is_public
from sendonce.sandbox.notion.files import striped_png
from tests.adapters.http_server import ScriptedServer, Step, answer, dripping
from tests.adapters.notion_stage import NotionStage

PNG = striped_png(48, 24)
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\x80\x00\x00" + b"\x00" * 30
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xff\xdb\x00\x05\x00\x00\x00\xff\xc2\x00\x11\x08\x00\x07\x00\x09\x03" + b"\x00" * 20
)
WEBP_LOSSY = (
    b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x0a\x00\x0b\x40" + b"\x00" * 9
)
WEBP_LOSSLESS = (
    b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + struct.pack("<I", 4 | 6 << 14) + b"\x00" * 9
)
WEBP_EXTENDED = (
    b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x31\x00\x00" + b"\x00" * 9
)


def served(content: bytes | Step, **headers: str) -> ImageCopy:
    """What becomes of an image from a server on this machine, where that is allowed."""
    step = content if isinstance(content, Step) else answer(200, content, **headers)
    with ScriptedServer([step]) as server:
        return copy_image(f"{server.url}/p.png?signature=abc", loopback_too=True)


@pytest.mark.parametrize(
    ("content", "kind", "size"),
    [
        (PNG, "image/png", (48, 24)),
        (GIF, "image/gif", (3, 2)),
        (JPEG, "image/jpeg", (9, 7)),
        (WEBP_LOSSY, "image/webp", (10, 11)),
        (WEBP_LOSSLESS, "image/webp", (5, 7)),
        (WEBP_EXTENDED, "image/webp", (100, 50)),
    ],
)
def test_known_images(content: bytes, kind: str, size: tuple[int, int]) -> None:
    """PNG, JPEG, GIF and WebP are known by their bytes, whatever the server calls them."""
    copy = served(content, Content_Type="text/html")
    assert copy.image is not None
    assert (copy.image.content_type, (copy.image.width, copy.image.height)) == (kind, size)
    assert copy.image.content == content
    assert copy.image.sha256 == hashlib.sha256(content).hexdigest()
    assert bool(copy.warnings) is (kind == "image/webp")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<html>not found</html>",
        PNG[:20],
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 40,
        JPEG[:24],
        b"RIFF....WEBPVP8?" + b"\x00" * 30,
        b"BM" + b"\x00" * 60,
    ],
)
def test_other_things_are_left_out(content: bytes) -> None:
    """SVG, pages, stumps and other formats are a warning, and the letter goes on."""
    copy = served(content, Content_Type="image/png")
    assert copy.image is None
    assert "not a PNG, JPEG, GIF or WebP" in copy.warnings[0]
    assert "signature" not in copy.warnings[0]


def test_bombs_and_giants() -> None:
    """Too many bytes, told or not, and too many pixels are left out; a heavy one is kept with a warning."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + b"IHDR"
        + header
        + struct.pack(">I", zlib.crc32(header))
    )
    assert "60000 × 60000 pixels" in served(bomb).warnings[0]
    giant = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + PNG + b"\x00" * MOST_BYTES
    assert "larger than 5120 KB" in served(Step(giant, "close")).warnings[0]
    heavy = served(PNG + b"\x00" * 2_000_000)
    assert heavy.image is not None
    assert "1.9 MB" in heavy.warnings[0]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (answer(403, b"<Error/>"), "answered 403"),
        (answer(500), "answered 500"),
        (Step(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + PNG, "close"), "in part"),
        (Step(b"", "reset"), "did not send it"),
        (Step(b"\x00\x01", "close"), "did not send it"),
    ],
)
def test_broken_servers(step: Step, told: str) -> None:
    """A server that fails costs the letter its image and no more."""
    copy = served(step)
    assert copy.image is None
    assert told in copy.warnings[0]


def copied(url: str, *addresses: str) -> str:
    """What is said of an address whose name resolves to ``addresses``."""
    copy = copy_image(url, resolve=lambda _host, _port: list(addresses))
    assert copy.image is None
    return copy.warnings[0]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.8",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:1::",
        "ff02::1",
        # IPv4 in IPv6 clothes: compatible, translated, NAT64 of a local prefix, ISATAP's link-local
        "::127.0.0.1",
        "::10.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b:1::7f00:1",
        "fe80::5efe:10.0.0.1",
        "2a00:1450:4010::5efe:10.0.0.1",
        "2a00:1450:4010::200:5efe:169.254.169.254",
        # the rest of IANA's registries
        "fec0::1",
        "fec0:0:0:ffff::1",
        "100::1",
        "100:0:0:1::1",
        "2001:2::1",
        "2001:20::1",
        "2001:db8::1",
        "2620:4f:8000::1",
        "3fff::1",
        "5f00::1",
        "4000::1",
        "192.0.0.9",
        "192.0.2.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "240.0.0.1",
    ],
)
def test_inner_addresses_are_refused(address: str) -> None:
    """Loopback, private, link-local, metadata, multicast, and IPv4 in IPv6 clothes."""
    assert not is_public(address)
    assert "not on the public internet" in copied("https://images.example/p.png", address)
    assert "not on the public internet" in copied("https://images.example/p.png", "93.184.216.34", address)


def test_public_addresses() -> None:
    """The rest of the world is fine."""
    world = ("93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "2001:4860:4860::8888", "2a02:6b8::1")
    assert all(is_public(address) for address in world)


@pytest.mark.parametrize(
    ("scheme", "first", "drop", "told"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX-Long: ", b"a", "takes too long"),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n", "takes too long"),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "headers without end"),
        ("http", b"HTTP/1.1 200 OK\r\n", b"X-Wide: " + b"a" * 60_000 + b"\r\n", "headers without end"),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n", b"a", "takes too long"),
        ("https", b"\x16\x03\x03\x40\x00\x02", b"\x00", "takes too long"),
    ],
    ids=["a header", "interim answers", "a flood of them", "wide headers", "the body", "the handshake"],
)
def test_one_deadline_holds_for_everything(scheme: str, first: bytes, drop: bytes, told: str) -> None:
    """A server that sends a little now and then, or no end of headers, is left when its time is over."""
    rules = FetchRules(MOST_BYTES, seconds=0.4, loopback_too=True)
    began = time.monotonic()
    with dripping(first, drop) as port, pytest.raises(FetchRefused, match=told):
        fetch(f"{scheme}://127.0.0.1:{port}/p.png", rules)
    assert time.monotonic() - began < 8


def test_a_name_server_that_does_not_answer_is_left() -> None:
    """Looking up a name counts, too."""
    never = threading.Event()

    def resolve(_host: str, _port: int) -> list[str]:
        never.wait(10)
        return ["93.184.216.34"]

    began = time.monotonic()
    with pytest.raises(FetchRefused, match="takes too long"):
        fetch("https://images.example/p.png", FetchRules(MOST_BYTES, seconds=0.2), resolve=resolve)
    never.set()
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    "url",
    [
        "http://images.example/p.png",
        "https://images.example:8443/p.png",
        "https://user:word@images.example/p.png",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "//images.example/p.png",
        "https://",
        "https://[",
        "https://a..b/p.png",
        "https://images.example:99999/",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    """Only https, on its usual port, with a plain name; no passwords, no files."""
    assert "is left out" in copied(url, "93.184.216.34")


def test_loopback_only_for_a_stand_in() -> None:
    """A server on this machine is not asked unless the Notion API is on this machine, too."""
    with ScriptedServer([answer(200, PNG)]) as server:
        assert copy_image(f"{server.url}/p.png").image is None
        assert copy_image(f"https://localhost:{server.port}/p.png").image is None
        assert server.connections == 0


def test_redirects_are_checked_anew() -> None:
    """A redirect is followed to where it may go, and not to where it may not."""
    elsewhere = answer(302, Location="http://169.254.169.254/latest/meta-data/")
    assert "is left out" in served(elsewhere).warnings[0]
    assert "is left out" in served(answer(302, Location="http://[")).warnings[0]
    with ScriptedServer([answer(302, Location="/next.png"), answer(200, PNG)]) as server:
        assert copy_image(f"{server.url}/p.png", loopback_too=True).image is not None
        assert [request.path for request in server.requests] == ["/p.png", "/next.png"]
    with ScriptedServer([answer(302, Location="/again")] * 9) as server:
        assert "redirects more than" in copy_image(f"{server.url}/p.png", loopback_too=True).warnings[0]


def test_the_checked_address_is_the_one_that_is_asked() -> None:
    """The name is resolved once; the certificate is checked for the name."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("images.example").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    asked: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with ScriptedServer([answer(200, PNG)] * 3, tls=context) as server:
        url = f"https://images.example:{server.port}/п%20.png"
        copy = copy_image(url, loopback_too=True, resolve=resolve, tls=trusting)
        assert copy.image is not None
        assert asked == ["images.example"]
        assert server.requests[0].headers["Host"] == f"images.example:{server.port}"
        wrong = copy_image(url.replace("images", "other"), loopback_too=True, resolve=resolve, tls=trusting)
        assert "no good certificate" in wrong.warnings[0]


def image_url(stage: NotionStage) -> str:
    page = stage.write({"Название": "С картинкой"}, [stage.put_file("p.png", PNG)])
    (block,) = read_blocks(stage.client, page).blocks
    url: str = block["image"]["file"]["url"]
    return url


def test_a_file_in_notion(tmp_path: Path) -> None:
    """A fresh link gives the image."""
    stage = NotionStage(tmp_path)
    copy = copy_image(image_url(stage), loopback_too=stage.client.is_stand_in)
    stage.close()
    assert copy.image is not None
    assert copy.image.content == PNG


def test_a_link_that_has_died(tmp_path: Path) -> None:
    """It costs the letter its image, with a warning."""
    stage = NotionStage(tmp_path, notion_file_seconds=-1)
    copy = copy_image(image_url(stage), loopback_too=True)
    stage.close()
    assert copy.image is None
    assert "answered 403" in copy.warnings[0]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([PNG, GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS, WEBP_EXTENDED]),
    st.integers(0, 60),
    st.binary(),
)
def test_damaged_images_do_not_crash(content: bytes, end: int, tail: bytes) -> None:
    """Any stump with any tail is an image of some size or none."""
    found = recognise(content[:end] + tail)
    assert found is None or (found.width > 0 and found.height > 0)
