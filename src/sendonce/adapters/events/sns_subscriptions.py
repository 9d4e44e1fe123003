"""Confirming an SNS subscription by a signed call of our own.

SubscribeURL is never opened: whoever sends the message chooses it. The call goes to the region of the
topic, which is one of ours, and only our credentials can later undo it (AuthenticateOnUnsubscribe).
"""

from __future__ import annotations

import http.client
import re
from datetime import UTC, datetime
from urllib.parse import urlencode

from sendonce.adapters.aws.credentials import Credentials
from sendonce.adapters.aws.http1 import Endpoint
from sendonce.adapters.aws.sigv4 import sign
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.errors import BadInput, Unavailable

_TIMEOUT_SECONDS = 10.0
_MAX_ANSWER_BYTES = 64 * 1024


def confirm_subscription(
    message: SnsMessage, credentials: Credentials, endpoint: str | None = None, now: datetime | None = None
) -> str:
    """Call ConfirmSubscription for a verified message; the subscription's ARN. Blocks. Raises Unavailable."""
    if message.type != "SubscriptionConfirmation" or not message.token:
        raise BadInput(f"An SNS message of type {message.type!r} confirms nothing.")
    suffix = ".cn" if message.topic_arn.startswith("arn:aws-cn:") else ""
    url = endpoint or f"https://sns.{message.region}.amazonaws.com{suffix}"
    form = {
        "Action": "ConfirmSubscription",
        "Version": "2010-03-31",
        "TopicArn": message.topic_arn,
        "Token": message.token,
        "AuthenticateOnUnsubscribe": "true",
    }
    status, answer = _post(
        Endpoint.parse(url, "AWS_ENDPOINT_URL_SNS"),
        urlencode(form).encode("ascii"),
        credentials,
        message.region,
        now or datetime.now(UTC),
    )
    arn = re.search(r"<SubscriptionArn>([^<]{1,300})</SubscriptionArn>", answer)
    if status != 200 or arn is None:
        raise Unavailable(
            f"SNS did not confirm the subscription to {message.topic_arn}: {status} {_error(answer)}"
        )
    return arn[1]


def _post(
    endpoint: Endpoint, body: bytes, credentials: Credentials, region: str, when: datetime
) -> tuple[int, str]:
    headers = {
        "Host": endpoint.host_header,
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
    }
    headers |= sign(
        "POST", "/", headers, body, credentials=credentials, region=region, service="sns", when=when
    )
    kind = http.client.HTTPSConnection if endpoint.secure else http.client.HTTPConnection
    connection = kind(endpoint.host, endpoint.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, response.read(_MAX_ANSWER_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as exc:
        raise Unavailable(f"SNS did not answer at {endpoint.host_header}: {exc}") from exc
    finally:
        connection.close()


def _error(answer: str) -> str:
    """The code of SNS's XML error, and the first line of its message: the rest may repeat our headers."""
    code = re.search(r"<Code>([^<\n]{1,100})", answer)
    message = re.search(r"<Message>([^<\n]{1,300})", answer)
    return f"{code[1] if code else 'without an error code'} {message[1] if message else ''}".rstrip()
