"""Clients of AWS services that botocore makes. Never for letters: these retry, and a letter leaves once."""

from __future__ import annotations

from typing import Any

from sendonce.adapters.aws.credentials import CredentialSource


def make_client(service: str, region: str, credentials: CredentialSource, endpoint: str | None) -> Any:
    """Loads botocore, which takes a while. Its adaptive retries keep to the rate that the service allows."""
    from botocore.config import Config
    from botocore.session import Session

    keys = credentials.current()
    config = Config(
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "adaptive", "total_max_attempts": 6},
        # Other stores that speak S3 know none of the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return Session().create_client(
        service,
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        aws_session_token=keys.token,
        config=config,
    )
