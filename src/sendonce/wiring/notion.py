"""Settings in, door A in Notion out: its pages read, and told what became of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sendonce.errors import BadSetting
from sendonce.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sendonce.adapters.notion.client import NotionClient
    from sendonce.adapters.notion.letters import NotionLetters
    from sendonce.adapters.notion.names import TableNames
    from sendonce.adapters.notion.pace import Policy
    from sendonce.adapters.notion.setup import SetupReport
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.mailouts import LetterSource
    from sendonce.ports.store import Store
from sendonce.wiring.house import time_zone
from sendonce.wiring.messages import message_settings
from sendonce.wiring.senders import keys_of


def notion_client(settings: Settings, policy: Policy | None = None) -> NotionClient:
    from sendonce.adapters.notion.client import NotionClient

    if not settings.notion_token:
        raise BadSetting("NOTION_TOKEN is not set: make an integration at notion.so/my-integrations.")
    return NotionClient(settings.notion_token, settings.notion_api_url, policy=policy)


def notion_names(settings: Settings) -> tuple[TableNames, TableNames]:
    """What the columns and options of «Письма» and «Ошибки» are called."""
    from sendonce.adapters.notion.names import own_names

    return own_names(json.loads(settings.notion_names or "{}"))


def set_up_notion(settings: Settings, page: str, language: str, *, change: bool) -> SetupReport:
    """Make the tables of letters and of errors under a page, or check those that are there."""
    from sendonce.adapters.notion.setup import SetupWish, set_up

    letters, errors = notion_names(settings)
    wish = SetupWish(
        parent=page,
        letters_id=settings.notion_letters_id,
        errors_id=settings.notion_errors_id,
        language=language,
        change=change,
        letters=letters,
        errors=errors,
    )
    return set_up(notion_client(settings), wish)


def notion_letters(settings: Settings, store: Store, client: NotionClient) -> NotionLetters:
    """The letters that are written in Notion."""
    from sendonce.adapters.notion.letters import NotionLetters

    table, names = settings.notion_letters_id, notion_names(settings)[0]
    zone = time_zone(settings)
    return NotionLetters(client, store.assets, settings.app_base_url, table, names, zone)


def letter_sources(settings: Settings, store: Store) -> Mapping[str, LetterSource]:
    """Where letters that are not in a file are read."""
    if not settings.notion_token:
        return {}
    return {"notion": notion_letters(settings, store, notion_client(settings))}


def make_notion_chores(settings: Settings, store: Store) -> list[Chore]:
    """Pages are read, and told what became of them."""
    if not settings.notion_token:
        return []
    from sendonce.adapters.notion.reporter import NotionReporter
    from sendonce.adapters.notion.reports import NotionReports
    from sendonce.flows.mailouts.explain_progress import explain_progress
    from sendonce.flows.mailouts.prepare_mailouts import Preparer
    from sendonce.wiring.sender_check import PATIENTLY, make_sender_check

    client = notion_client(settings)
    letters, errors = notion_names(settings)
    source = notion_letters(settings, store, client)
    check = make_sender_check(settings, store, PATIENTLY)
    preparer = Preparer(
        store, {"notion": source}, lambda: message_settings(settings, store), settings.test_emails, check
    )
    chores: list[Chore] = [(0.5, preparer.run)]
    if settings.notion_letters_id:
        reports = NotionReports(
            client, settings.notion_letters_id, settings.notion_errors_id, letters, errors
        )
        keys = keys_of(settings)
        reporter = NotionReporter(
            store,
            reports,
            with_errors=bool(settings.notion_errors_id),
            explain=lambda mailout, books: explain_progress(store, mailout, books, keys),
            zone=time_zone(settings),
        )
        chores.append((2.0, reporter.run))
    return chores
