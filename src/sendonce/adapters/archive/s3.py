"""An archive in a bucket of S3, or of a store that speaks S3: ``<prefix>/<kind>/<day>/<name>.gz``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sendonce.adapters.archive.names import checked_kind, day_of, file_name
from sendonce.adapters.aws.clients import make_client
from sendonce.adapters.aws.credentials import CredentialSource
from sendonce.errors import NotFound, Unavailable

_GONE = ("NoSuchKey", "404")
_AT_ONCE = 1000  # S3 lists and deletes no more at a time


@dataclass(frozen=True, slots=True)
class S3Settings:
    """``prefix`` has no slash at its ends; empty: the records are at the bucket's root."""

    bucket: str
    prefix: str
    region: str
    credentials: CredentialSource
    endpoint: str | None = None


class S3Archive:
    """ports.Archive in a bucket. It asks nothing of S3 before the first record is kept, read or pruned."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._root = f"{settings.prefix}/" if settings.prefix else ""
        self._made: Any = None

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        key = f"{self._of_kind(kind)}{day_of(at)}/{file_name(name)}"
        with self._asked("keep", key):
            self._client.put_object(
                Bucket=self._settings.bucket,
                Key=key,
                Body=gzip.compress(data, mtime=0),
                ContentType="application/gzip",
            )
        return self._place(key)

    def read(self, place: str) -> bytes:
        key = place.removeprefix(self._place(""))
        if key != place and key.startswith(self._root):
            try:
                with self._asked("read", key):
                    found = self._client.get_object(Bucket=self._settings.bucket, Key=key)
                    return gzip.decompress(found["Body"].read())
            except (gzip.BadGzipFile, EOFError, zlib.error):
                pass
        raise NotFound(f"The archive {self._place(self._root)} has no {place}.")

    def prune(self, kind: str, before: datetime) -> int:
        folder, removed = self._of_kind(kind), 0
        with self._asked("prune", folder):
            while old := self._first_before(folder, day_of(before)):
                answer = self._client.delete_objects(
                    Bucket=self._settings.bucket, Delete={"Objects": [{"Key": key} for key in old]}
                )
                if failed := answer.get("Errors"):
                    raise Unavailable(f"S3 did not remove {failed[0].get('Key')}: {failed[0].get('Code')}.")
                removed += len(old)
        return removed

    def _first_before(self, folder: str, first_kept: str) -> list[str]:
        """The oldest records: S3 lists keys in order, and the day is the first part of them."""
        page = self._client.list_objects_v2(Bucket=self._settings.bucket, Prefix=folder, MaxKeys=_AT_ONCE)
        keys = [item["Key"] for item in page.get("Contents", ())]
        return [key for key in keys if key < f"{folder}{first_kept}"]

    def _of_kind(self, kind: str) -> str:
        return f"{self._root}{checked_kind(kind)}/"

    def _place(self, key: str) -> str:
        return f"s3://{self._settings.bucket}/{key}"

    @property
    def _client(self) -> Any:
        if self._made is None:
            given = self._settings
            self._made = make_client("s3", given.region, given.credentials, given.endpoint)
        return self._made

    @contextmanager
    def _asked(self, what: str, key: str) -> Iterator[None]:
        """Raises NotFound for a key that is not there, Unavailable for every other trouble."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as exc:
            error = exc.response.get("Error", {})
            if error.get("Code") in _GONE:
                raise NotFound(f"The archive has no {self._place(key)}.") from exc
            told = f"{error.get('Code')} {error.get('Message')}"
            raise Unavailable(
                f"The archive cannot {what} {self._place(key)}: {told}. Nothing was lost; correct "
                "ARCHIVE_URL, or the credentials and their permissions."
            ) from exc
        except BotoCoreError as exc:
            raise Unavailable(f"The archive cannot {what} {self._place(key)}: {exc}") from exc
