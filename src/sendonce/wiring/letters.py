"""Settings in, letters out: those in files, and those on pages of Notion."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sendonce.domain.mailouts.letter_files import LetterFile, WrittenLetter
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.errors import BadInput
from sendonce.flows.mailouts.accept_file import accept_file
from sendonce.settings import Settings
from sendonce.wiring.house import time_zone
from sendonce.wiring.messages import sample_message_settings
from sendonce.wiring.notion import notion_client, notion_names


def letter_in_file(settings: Settings, file: Path) -> WrittenLetter:
    """Markdown or HTML, by the file's name. Raises Unsendable for a letter that could never be sent."""
    from sendonce.adapters.images.local_images import local_images
    from sendonce.adapters.sources.html import html_draft
    from sendonce.adapters.sources.markdown import markdown_draft

    text = _read_text(file)
    is_html = file.suffix.lower() in (".html", ".htm")
    draft = html_draft(text) if is_html else markdown_draft(text, local=True)
    beside = local_images(file.parent, draft.blocks, settings.app_base_url)
    read = LetterFile(str(file), file.name, draft, beside.hosted, beside.assets, beside.warnings)
    return accept_file(read, sample_message_settings(settings), time_zone(settings), datetime.now(UTC))


def letter_on_page(settings: Settings, page: str) -> WrittenLetter:
    """The page is read when the mailout starts; here it is only seen to be there."""
    from sendonce.adapters.notion.pages import read_letter

    found = read_letter(notion_client(settings), page, notion_names(settings)[0])
    return WrittenLetter(NewMailout(found.title or found.subject, "notion", None, source_id=found.id))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file} is not UTF-8 text: save it as UTF-8.") from exc
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
