"""Signing and credentials, judged by botocore."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.aws.credentials import (
    ChainCredentials,
    Credentials,
    StaticCredentials,
    credential_source,
)
from sendonce.adapters.aws.sigv4 import sign
from sendonce.errors import BadInput, Unavailable
from tests.adapters.http_server import ScriptedServer, answer

_key = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/+=", min_size=1, max_size=40)
_when = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


class _SignedAt(SigV4Auth):
    """botocore signs with the present time; this one with a given time."""

    def __init__(self, when: datetime, *args: str | BotoCredentials) -> None:
        super().__init__(*args)
        self._when = when

    def add_auth(self, request: AWSRequest) -> None:
        request.context["timestamp"] = self._when.strftime("%Y%m%dT%H%M%SZ")
        self._modify_request_before_signing(request)
        to_sign = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(to_sign, request))


def _by_botocore(
    method: str, path: str, headers: dict[str, str], body: bytes, credentials: Credentials, when: datetime
) -> dict[str, str]:
    request = AWSRequest(method, f"https://{headers['Host']}{path}", headers=headers, data=body)
    theirs = BotoCredentials(credentials.access_key, credentials.secret_key, credentials.token)
    _SignedAt(when, theirs, "ses", "eu-central-1").add_auth(request)
    return dict(request.headers)


@settings(max_examples=150, deadline=None)
@given(
    method=st.sampled_from(["POST", "GET"]),
    path=st.sampled_from(["/", "/v2/email/outbound-emails", "/v2/email/account", "/a b/~c/é"]),
    content_type=st.sampled_from(["application/json", "text/plain;  charset=utf-8 "]),
    body=st.binary(max_size=200),
    credentials=st.builds(Credentials, _key, _key, st.none() | _key),
    when=_when,
)
def test_the_signature_is_botocores(
    method: str, path: str, content_type: str, body: bytes, credentials: Credentials, when: datetime
) -> None:
    """For any request and any credentials, Authorization is what botocore computes."""
    headers = {"Host": "email.eu-central-1.amazonaws.com", "Content-Type": content_type}
    ours = sign(
        method, path, headers, body, credentials=credentials, region="eu-central-1", service="ses", when=when
    )
    theirs = _by_botocore(method, path, headers, body, credentials, when)
    assert ours == {name: theirs[name] for name in ours}
    assert ("X-Amz-Security-Token" in ours) == (credentials.token is not None)


def test_the_date_is_the_callers_in_any_zone() -> None:
    """The signing date is the given moment in UTC; a moment without a zone is a mistake."""
    moment = datetime(2026, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=3)))

    def date_of(when: datetime) -> str:
        return sign(
            "GET",
            "/",
            {"Host": "h"},
            b"",
            credentials=Credentials("k", "s"),
            region="r",
            service="ses",
            when=when,
        )["X-Amz-Date"]

    assert date_of(moment) == "20260630T223000Z"
    with pytest.raises(ValueError, match="time zone"):
        date_of(datetime(2026, 7, 1))


def test_keys_of_the_settings_win_and_go_together() -> None:
    """Both keys: used as they are. One of them: an error that names the other. A stray line end: an error."""
    given_keys = credential_source("AKID", "secret", "")
    assert given_keys == StaticCredentials(Credentials("AKID", "secret", None))
    with pytest.raises(BadInput, match="AWS_SECRET_ACCESS_KEY is missing"):
        credential_source("AKID", None)
    with pytest.raises(BadInput, match="AWS_SESSION_TOKEN"):
        credential_source("AKID", "secret", "token\r\nX-Evil: 1")
    assert "secret" not in repr(given_keys)


@pytest.fixture
def bare_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that knows nothing of AWS: the file returned is where a profile would be."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path / "credentials"


def test_no_credentials_says_what_to_set(bare_aws: Path) -> None:
    """The error names the variables, and the chain is searched again next time."""
    chain = ChainCredentials()
    with pytest.raises(Unavailable, match="Set AWS_ACCESS_KEY_ID"):
        chain.current()
    bare_aws.write_text("[default]\naws_access_key_id = AKFILE\naws_secret_access_key = s\n")
    assert chain.current() == Credentials("AKFILE", "s")


def test_an_unknown_profile_is_unavailable(bare_aws: Path) -> None:
    """botocore's own errors do not leak."""
    with pytest.raises(Unavailable, match="nobody"):
        ChainCredentials("nobody").current()


def test_a_container_role_serves_many_threads(bare_aws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary credentials come from the container's endpoint once, whoever asks."""
    expiry = (datetime.now(UTC) + timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
    role = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "t", "Expiration": expiry}
    with ScriptedServer([answer(200, role), answer(500)]) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/role")
        chain = ChainCredentials()
        seen: list[Credentials] = []
        threads = [threading.Thread(target=lambda: seen.append(chain.current())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [Credentials("ASIA", "s", "t")] * 4
    assert len(server.requests) == 1
