"""Alerts by Telegram's bot API."""

from __future__ import annotations

from sendonce.errors import Unavailable

_WITHIN = 10.0
_LONGEST = 4000


class Telegram:
    """The token is part of the address, so no message of an error may show it."""

    def __init__(self, api_url: str, token: str, chat_id: str) -> None:
        self._url = f"{api_url.rstrip('/')}/bot{token}/sendMessage"
        self._chat_id = chat_id

    def tell(self, text: str) -> None:
        """Raises Unavailable where Telegram does not take it."""
        # Only who sets a token pays for its import.
        import httpx

        body = {"chat_id": self._chat_id, "text": text[:_LONGEST], "disable_web_page_preview": True}
        try:
            answer = httpx.post(self._url, json=body, timeout=_WITHIN)
        except httpx.HTTPError as exc:
            raise Unavailable(f"Telegram did not answer: {type(exc).__name__}.") from None
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(
                f"Telegram did not take an alert: status {answer.status_code}. {_reason(answer.text)}"
            )


def _reason(text: str) -> str:
    """What Telegram says of it, without what it may repeat of the request."""
    _, mark, rest = text.partition('"description":"')
    return rest.partition('"')[0][:200] if mark else ""
