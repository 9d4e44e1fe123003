"""The golden files and what they are made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sendonce.adapters.notion.blocks import convert_blocks
from sendonce.domain.mailouts.blocks import Block, files
from sendonce.domain.mailouts.rendering import Hosted, render
from sendonce.domain.mailouts.rendering.hosting import Hosting
from sendonce.domain.mailouts.rendering.html import HtmlBlocks
from sendonce.domain.mailouts.rendering.styles import Sheet
from sendonce.domain.mailouts.rendering.text import text_document
from tests.golden.sample_letter import SAMPLE_SUBJECT, sample_blocks

HERE = Path(__file__).parent
BLOCKS: dict[str, list[dict[str, Any]]] = json.loads(
    (HERE / "notion_blocks.json").read_text(encoding="utf-8")
)


def copies(blocks: tuple[Block, ...]) -> dict[str, Hosted]:
    """Where the files that expire were copied to."""
    expiring = [file for file in files(blocks) if file.expires]
    return {file.url: Hosted(f"https://mail.example.com/assets/{n}", 400) for n, file in enumerate(expiring)}


def golden_files() -> dict[Path, str]:
    """Every golden file with the text it should hold."""
    written: dict[Path, str] = {}
    for kind, blocks in BLOCKS.items():
        content = convert_blocks(blocks)
        hosting = Hosting(copies(content.blocks))
        html = HtmlBlocks(Sheet(), hosting).blocks(content.blocks, 552)
        written[HERE / "blocks" / f"{kind}.html"] = html + "\n"
        written[HERE / "blocks" / f"{kind}.txt"] = text_document(content.blocks, hosting)
        if content.warnings:
            written[HERE / "blocks" / f"{kind}.warnings.txt"] = "\n".join(content.warnings) + "\n"
    sample = render(sample_blocks(), title=SAMPLE_SUBJECT)
    written[HERE / "letter.html"] = sample.html
    written[HERE / "letter.txt"] = sample.text
    return written


def write_golden_files() -> list[Path]:
    """Writes them anew; tells which changed. Files of cases that are gone are removed."""
    wanted = golden_files()
    for old in (HERE / "blocks").glob("*"):
        if old not in wanted:
            old.unlink()
    changed = [
        path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    return changed
