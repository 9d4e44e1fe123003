"""Notion: whether it knows the token, whether both tables are as they should be, and the webhook works.

Letters of files go out whatever Notion does, so a Notion that is merely slow stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.handshake import WebhookDiary
from sendonce.adapters.notion.setup import SetupWish, check_table
from sendonce.domain.engine.checks import Check, ok, stop, warning
from sendonce.domain.engine.hosts import is_loopback_url
from sendonce.errors import BadInput, NotFound, RefusedByRule, Unavailable

_SETUP = "Run 'sendonce notion setup': it adds what is missing and tells what it cannot add."
_VARIABLES = {"letters": "NOTION_LETTERS_ID", "errors": "NOTION_ERRORS_ID"}
_LOST = {"letters": "no page is told what became of it", "errors": "errors are told in the CSV only"}


@dataclass(frozen=True, slots=True)
class Webhook:
    """``token`` is NOTION_WEBHOOK_TOKEN, empty where letters are started by a button or by commands.

    In a ``rehearsal`` Notion is on this machine, too.
    """

    token: str
    rehearsal: bool
    base_url: str
    diary: WebhookDiary


class NotionProbe:
    name = "notion"

    def __init__(self, client: Callable[[], NotionClient], wish: SetupWish, webhook: Webhook) -> None:
        self._client = client
        self._wish = wish
        self._webhook = webhook

    async def examine(self) -> Sequence[Check]:
        return await in_own_thread(self._look)

    def _look(self) -> Sequence[Check]:
        try:
            client = self._client()
            try:
                me = client.get("/v1/users/me")
                tables = [self._table(client, role) for role in _VARIABLES]
            finally:
                client.close()
        except Unavailable as exc:
            return [warning(self.name, str(exc), "Letters wait for their pages until it answers again.")]
        except (BadInput, RefusedByRule) as exc:
            return [stop("notion.token", str(exc), "The text says what to do.")]
        known = ok(
            "notion.token", f"Notion knows the token: it is that of the integration «{me.get('name')}»."
        )
        return [known, *tables, *self._hook()]

    def _table(self, client: NotionClient, role: str) -> Check:
        name, variable = f"notion.{role}", _VARIABLES[role]
        wanted = self._wish.letters_id if role == "letters" else self._wish.errors_id
        if not wanted:
            return warning(name, f"{variable} is not set: {_LOST[role]}.", _SETUP)
        try:
            report = check_table(client, self._wish, role)
        except NotFound:
            what = (
                f"{variable} is {wanted}: Notion has no such table, or it is not shared with the integration."
            )
            return stop(name, what, "Open its page in Notion, ••• → Connections, and add the integration.")
        except (BadInput, RefusedByRule) as exc:
            return stop(name, f"{variable}: {exc}", "The text says what to do.")
        if report.problems:
            judge = warning if report.is_usable else stop
            return judge(name, " ".join(report.problems), _SETUP)
        return ok(name, f"«{report.title}» has all that it needs.")

    def _hook(self) -> list[Check]:
        """Of a webhook that is not set up nothing is said: a button does as well."""
        name, it = "notion.webhook", self._webhook
        if not it.token:
            return []
        if is_loopback_url(it.base_url) and not it.rehearsal:
            what = f"Notion cannot reach {it.base_url}/webhooks/notion: it is on this machine."
            return [warning(name, what, "Set APP_BASE_URL to an https:// address, and use it in Notion.")]
        heard = it.diary.last_heard(it.token)
        if heard is None:
            what = "Nothing that is signed with NOTION_WEBHOOK_TOKEN has come yet, as far as is known here."
            fix = (
                "Change the status of a page, and look again in a minute. If nothing comes: is the webhook "
                "verified at notion.so/my-integrations, and does its URL lead here?"
            )
            return [warning(name, what, fix)]
        return [ok(name, f"The webhook works: it was last heard {_ago(time.time() - heard)} ago.")]


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return "less than a minute"
