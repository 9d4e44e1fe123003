"""S3, as far as an archive needs it: objects are put, read, listed in order and deleted. Path style only."""

from __future__ import annotations

import re
from hashlib import md5
from urllib.parse import unquote
from xml.sax.saxutils import escape, unescape

from sendonce.sandbox.http_server import Reply, Request
from sendonce.sandbox.refusals import ServiceRefusal

PREFIX = "/s3"
_MOST = 1000
_XML = "application/xml"


class S3:
    """Objects live as long as the sandbox; every bucket exists."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, bytes]] = {}

    def answer(self, request: Request) -> Reply:
        bucket, _, key = unquote(request.path.removeprefix(PREFIX)).strip("/").partition("/")
        objects = self._objects.setdefault(bucket, {})
        match request.method, bool(key):
            case "PUT", True:
                objects[key] = request.body
                return Reply(headers=(("ETag", _tag(request.body)),))
            case "GET", True if key in objects:
                return Reply(body=objects[key], content_type="application/octet-stream")
            case "GET", True:
                raise ServiceRefusal(404, "NoSuchKey", "The specified key does not exist.")
            case "GET", False:
                return _listed(bucket, objects, request.parameters())
            case "POST", False if request.query.startswith("delete"):
                return _deleted(objects, request.body.decode())
        raise ServiceRefusal(
            501, "NotImplemented", f"This world's S3 cannot {request.method} {request.path}."
        )


def _listed(bucket: str, objects: dict[str, bytes], wanted: dict[str, str]) -> Reply:
    prefix, most = wanted.get("prefix", ""), min(int(wanted.get("max-keys", _MOST)), _MOST)
    after = wanted.get("continuation-token", wanted.get("start-after", ""))
    keys = sorted(key for key in objects if key.startswith(prefix) and key > after)
    page, more = keys[:most], len(keys) > most
    items = "".join(
        f"<Contents><Key>{escape(key)}</Key><ETag>{_tag(objects[key])}</ETag>"
        f"<Size>{len(objects[key])}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key in page
    )
    following = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
    return _xml(
        "ListBucketResult",
        f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<MaxKeys>{most}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>{following}{items}",
    )


def _deleted(objects: dict[str, bytes], asked: str) -> Reply:
    keys = [unescape(key) for key in re.findall("<Key>([^<]*)</Key>", asked)]
    if len(keys) > _MOST:
        raise ServiceRefusal(400, "MalformedXML", "The XML you provided was not well-formed.")
    for key in keys:
        objects.pop(key, None)
    told = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
    return _xml("DeleteResult", told)


def _xml(name: str, content: str) -> Reply:
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    body = f'<?xml version="1.0" encoding="UTF-8"?><{name} xmlns="{namespace}">{content}</{name}>'
    return Reply(body=body.encode(), content_type=_XML)


def _tag(body: bytes) -> str:
    return f'"{md5(body, usedforsecurity=False).hexdigest()}"'
