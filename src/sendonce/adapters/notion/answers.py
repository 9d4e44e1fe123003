"""What Notion says when it says no, in the words of ``sendonce.errors``, each with its fix."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sendonce.adapters.notion.wire import Answer
from sendonce.domain.engine.strict_json import strict_object
from sendonce.errors import BadInput, NotFound, RefusedByRule, SendonceError, Unavailable


class NotionBusy(Unavailable):
    """Notion asks to come back later; ``retry_after`` in seconds where it says when."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ReplyLost(Unavailable):
    """Something was to be created, and it is unknown whether it was: look before creating it again."""


class Fate(Enum):
    """What an answer means for the request."""

    DONE = "done"
    REFUSED = "refused, and will be again"
    NOT_DONE = "not carried out; may be asked again"
    UNKNOWN = "carried out or not; only what changes nothing twice may be asked again"


# 409: the transaction could not be completed. 429 and 529: turned away at the door.
_NOT_DONE = {409, 429, 529}
# 503 is also what Notion answers when carrying out the request takes longer than a minute.
_UNKNOWN = {500, 502, 503, 504}


def fate_of(answer: Answer) -> Fate:
    if answer.status in _NOT_DONE:
        return Fate.NOT_DONE
    if answer.status in _UNKNOWN or answer.status > 504:
        return Fate.UNKNOWN
    return Fate.DONE if 200 <= answer.status < 300 else Fate.REFUSED


def read_object(answer: Answer, what: str) -> dict[str, Any]:
    """The JSON object in a good answer. A page of HTML under status 200 is a proxy speaking, not Notion."""
    try:
        return strict_object(answer.body, f"Notion's answer to {what}")
    except BadInput as exc:
        raise Unavailable(f"{exc} Something stands between us and Notion: try again.") from exc


def refusal(answer: Answer, what: str) -> SendonceError:
    """The error for an answer that will not change by asking again."""
    said = _message(answer.body)
    if answer.status == 401:
        return RefusedByRule(
            "Notion does not know NOTION_TOKEN. Copy the internal integration secret again from "
            "notion.so/my-integrations."
        )
    if answer.status == 403:
        return RefusedByRule(
            f"Notion does not let the integration do this ({what}): {said} Give it the capabilities to read, "
            "update and insert content at notion.so/my-integrations."
        )
    if answer.status == 404:
        return NotFound(
            f"Notion has nothing there, or it is not shared with the integration ({what}). Open the page in "
            "Notion, ••• → Connections, and add the integration."
        )
    if answer.status in (400, 413):
        return BadInput(f"Notion refused {what}: {said}")
    return Unavailable(f"Notion answered {answer.status} to {what}: {said}")


def out_of_tries(answer: Answer, what: str) -> SendonceError:
    """The error for an answer that may well change by asking later."""
    return NotionBusy(
        f"Notion answered {answer.status} to {what}: {_message(answer.body)}", answer.retry_after
    )


def _message(body: bytes) -> str:
    """Notion's own words, shortened; the answers of its proxies are HTML and say nothing to anybody."""
    try:
        message = strict_object(body, "the answer").get("message")
    except BadInput:
        message = None
    text = " ".join(message.split()) if isinstance(message, str) else "no reason was given"
    return f"{text[:300].rstrip('.')}."
