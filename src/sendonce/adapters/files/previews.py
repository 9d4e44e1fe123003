"""A preview as an HTML file for the browser of the letter's author."""

from __future__ import annotations

import os
import uuid
from html import escape
from pathlib import Path

from sendonce.domain.mailouts.previews import Preview
from sendonce.errors import BadInput

_STYLE = (
    "body{margin:0;font:15px/1.5 system-ui,sans-serif;background:#f2f2f2;color:#1a1a1a}"
    "main{max-width:760px;margin:0 auto;padding:24px}h2{font-size:16px;margin:28px 0 8px}"
    "table,pre,iframe{background:#fff;border:1px solid #ccc;border-radius:6px;width:100%}"
    "td{padding:2px 10px;vertical-align:top;overflow-wrap:anywhere}td:first-child{color:#666}"
    "*{box-sizing:border-box}pre{padding:16px;white-space:pre-wrap;overflow-wrap:anywhere}iframe{height:900px}"
)
# The letter is our own HTML with a stranger's values in it. Nothing in it may run or be sent.
_POLICY = "default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; form-action 'none'"


def write_preview(folder: Path, name: str, preview: Preview) -> Path:
    """The page, for its owner's eyes only. It takes the place of an earlier one; a link is not followed."""
    path, draft = folder / f"{name}.html", folder / f".{name}-{uuid.uuid4()}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(preview_page(preview))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as exc:
        raise BadInput(f"The preview {path} cannot be written: {exc.strerror}. Set STATE_DIR.") from exc
    return path


def preview_page(preview: Preview) -> str:
    rows = "".join(f"<tr><td>{escape(n)}</td><td>{escape(v)}</td></tr>" for n, v in preview.headers)
    html = (
        f'<h2>HTML</h2>\n<iframe sandbox="" srcdoc="{escape(preview.html)}"></iframe>' if preview.html else ""
    )
    return (
        '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<title>{escape(preview.subject)}</title>\n<style>{_STYLE}</style>\n</head>\n<body><main>\n"
        f"<p>A preview, as {escape(preview.recipient)} would get it. Nothing was sent; its links to "
        "unsubscribe work for nobody.</p>\n"
        f"<h2>Headers</h2>\n<table>{rows}</table>\n{html}\n"
        f"<h2>Plain text</h2>\n<pre>{escape(preview.text)}</pre>\n</main></body>\n</html>\n"
    )
