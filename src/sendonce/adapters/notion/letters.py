"""A letter from a page of Notion: its properties, its blocks, and copies of its images.

Notion's file links die within the hour, so images are copied when the letter is read and served by us
under the hash of their content.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from sendonce.adapters.images.copies import copy_image
from sendonce.adapters.notion.blocks import convert_blocks
from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.names import LETTERS, TableNames
from sendonce.adapters.notion.pages import LetterPage, read_blocks, read_letter
from sendonce.adapters.notion.tables import Table, TableCache, status_option, with_fresh_columns
from sendonce.adapters.web.public_fetch import LONGEST_FETCH
from sendonce.domain.engine.letters import language_named
from sendonce.domain.mailouts.blocks import Block, Draft, Image, files
from sendonce.domain.mailouts.mailouts import FetchedLetter, MailoutStatus
from sendonce.domain.mailouts.rendering import compose
from sendonce.domain.mailouts.rendering.hosting import Hosted
from sendonce.errors import BadInput, RefusedByRule
from sendonce.ports.mailouts import Assets

# Slow servers cost the letter their images; they do not keep the next letter from being read.
_IMAGES_WITHIN = 90.0


class NotionLetters:
    """ports.LetterSource. ``table_id`` is «Письма», if only its pages may be sent; ``base_url`` is ours;
    ``zone`` is that of times that name none."""

    def __init__(
        self,
        client: NotionClient,
        assets: Assets,
        base_url: str,
        table_id: str = "",
        names: TableNames = LETTERS,
        zone: ZoneInfo | None = None,
    ) -> None:
        self._client = client
        self._assets = assets
        self._base_url = base_url
        self._table_id = table_id
        self._names = names
        self._zone = zone or ZoneInfo("UTC")
        self._tables: dict[str, TableCache] = {}

    def fetch(self, page_id: str) -> FetchedLetter:
        page = read_letter(self._client, page_id, self._names)
        self._refuse_strays(page)
        tree = read_blocks(self._client, page_id)
        content = convert_blocks(tree.blocks)
        hosted, warnings = self._copy_images(content.blocks)
        draft = Draft(
            subject=page.subject or page.title,
            blocks=content.blocks,
            preheader=page.preheader,
            from_name=page.from_name or None,
            reply_to=page.reply_to or None,
            language=language_named(page.language),
            warnings=(*tree.warnings, *content.warnings, *warnings),
        )
        if not draft.subject.strip():
            raise BadInput("The page has no title and no subject: write one.")
        composed = compose(draft, hosted)
        return FetchedLetter(
            name=page.title or page.subject,
            letter=composed.letter,
            warnings=composed.warnings,
            is_test=page.is_test,
            status=page.status,
            status_name=page.status_name,
            send_at=page.send_at.moment(self._zone) if page.send_at else None,
        )

    def take_back(self, page_id: str) -> None:
        page = read_letter(self._client, page_id, self._names)
        if page.status != MailoutStatus.READY or page.data_source_id is None:
            return

        def write(table: Table) -> None:
            option = status_option(table, self._names, MailoutStatus.DRAFT)
            self._client.update(f"/v1/pages/{page.id}", {"properties": table.properties({"status": option})})

        with_fresh_columns(self._table_of(page.data_source_id), write)

    def _table_of(self, data_source_id: str) -> TableCache:
        if data_source_id not in self._tables:
            self._tables[data_source_id] = TableCache(self._client, data_source_id, self._names)
        return self._tables[data_source_id]

    def _refuse_strays(self, page: LetterPage) -> None:
        if page.in_trash:
            raise RefusedByRule("The page is in Notion's trash: restore it first.")
        if self._table_id and not page.belongs_to(self._table_id):
            raise RefusedByRule("The page is not in the table of letters (NOTION_LETTERS_ID): move it there.")

    def _copy_images(self, blocks: Sequence[Block]) -> tuple[dict[str, Hosted], list[str]]:
        hosted: dict[str, Hosted] = {}
        warnings: list[str] = []
        ends = time.monotonic() + _IMAGES_WITHIN
        for url in dict.fromkeys(file.url for file in files(blocks) if isinstance(file, Image)):
            seconds = min(LONGEST_FETCH, ends - time.monotonic())
            copy = copy_image(url, loopback_too=self._client.is_stand_in, seconds=seconds)
            warnings += copy.warnings
            if copy.image is not None:
                self._assets.put(copy.image.sha256, copy.image.content_type, copy.image.content)
                hosted[url] = Hosted(f"{self._base_url}/assets/{copy.image.sha256}", copy.image.width)
        return hosted, warnings
