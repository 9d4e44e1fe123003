"""The account's suppression list of SES v2. It is kept, listed and changed; letters do not meet it here."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from sendonce.sandbox.http_server import Reply, Request, json_reply
from sendonce.sandbox.refusals import ServiceRefusal, bad_request

_ADDRESSES = "/v2/email/suppression/addresses"
_REASONS = ("BOUNCE", "COMPLAINT")


class SuppressionList:
    """Lives as long as the sandbox."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._listed: dict[str, dict[str, Any]] = {}

    def answer(self, request: Request) -> Reply:
        address = unquote(request.path.removeprefix(_ADDRESSES)).strip("/").lower()
        match request.method, bool(address):
            case "PUT", False:
                return self._put(json.loads(request.body))
            case "GET", False:
                return self._page(request.parameters())
            case "GET", True:
                return json_reply({"SuppressedDestination": self._known(address)})
            case "DELETE", True:
                del self._listed[self._known(address)["EmailAddress"]]
                return json_reply({})
        raise ServiceRefusal(404, "UnknownOperationException", f"No {request.method} {request.path} here.")

    def _put(self, asked: dict[str, str]) -> Reply:
        address, reason = asked.get("EmailAddress", "").lower(), asked.get("Reason")
        if "@" not in address or reason not in _REASONS:
            raise bad_request("An address and a reason of BOUNCE or COMPLAINT are needed.")
        entry = {"EmailAddress": address, "Reason": reason, "LastUpdateTime": self._now()}
        self._listed[address] = entry
        return json_reply({})

    def _page(self, asked: dict[str, str]) -> Reply:
        """In the order of addresses; the token is the last address of the page before."""
        since = datetime.fromisoformat(asked["StartDate"]).timestamp() if "StartDate" in asked else 0.0
        size, after = int(asked.get("PageSize", 1000)), asked.get("NextToken", "")
        found = [
            entry
            for address, entry in sorted(self._listed.items())
            if entry["LastUpdateTime"] >= since and address > after
        ]
        page = {"SuppressedDestinationSummaries": found[:size]}
        more = {"NextToken": found[size - 1]["EmailAddress"]} if len(found) > size else {}
        return json_reply({**page, **more})

    def _known(self, address: str) -> dict[str, Any]:
        if address not in self._listed:
            raise ServiceRefusal(404, "NotFoundException", f"Email address {address} does not exist.")
        return self._listed[address]
