"""Settings in, the reader of what Notion posts out."""

from __future__ import annotations

from sendonce.adapters.notion.handshake import HandshakeWindow
from sendonce.adapters.notion.inbox import NotionInbox
from sendonce.adapters.notion.pace import Policy
from sendonce.ports.mailouts import PageInbox
from sendonce.settings import Settings
from sendonce.wiring.notion import notion_client, notion_names

# Whoever posts waits for the answer. Where Notion is slow, it gets 503 and comes again.
QUICK = Policy(tries=2, first_pause=0.2, patience=5.0, request_seconds=5.0)


def notion_inbox(settings: Settings) -> PageInbox:
    return NotionInbox(
        lambda: notion_client(settings, QUICK),
        notion_names(settings)[0],
        settings.notion_letters_id,
        settings.notion_webhook_token,
        settings.state_dir,
    )


def handshake_window(settings: Settings) -> HandshakeWindow:
    """Where the verification token of a new webhook is waited for."""
    return HandshakeWindow(settings.state_dir)
