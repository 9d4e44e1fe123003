"""A letter as a page: what its reader got, filled in again from the frozen letter and the job's fields.

Without the way out: who is shown the link by its reader must not be able to unsubscribe them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.templates import Template

_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)


def web_letter(letter: Letter, fields: Mapping[str, str], footer_address: str) -> str:
    """The page. Values are escaped; one that is missing is left empty."""
    address = escape(footer_address.strip()).replace("\n", "<br>")
    foot = (
        f'<div style="padding:24px 16px;text-align:center;font:12px/18px Arial,sans-serif">{address}</div>\n'
    )
    if letter.text_only:
        words = escape(_filled(letter.text, fields))
        title = escape(_filled(letter.subject, fields))
        return (
            f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>\n<body>'
            f'<pre style="white-space:pre-wrap">{words}</pre>\n{foot}</body></html>\n'
        )
    html = _filled(letter.html, fields, escaped=True)
    ends = list(_BODY_END.finditer(html))
    end = ends[-1].start() if ends else len(html)
    return html[:end] + foot + html[end:]


def _filled(source: str, fields: Mapping[str, str], *, escaped: bool = False) -> str:
    parts = (
        part if isinstance(part, str) else _value(part.resolve(fields) or "", escaped=escaped)
        for part in Template.parse(source).parts
    )
    return "".join(parts)


def _value(value: str, *, escaped: bool) -> str:
    return escape(value) if escaped else value
