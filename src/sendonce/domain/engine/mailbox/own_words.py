"""The words that somebody wrote, without what they quote and without their signature."""

from __future__ import annotations

import re

from sendonce.domain.engine.mailbox.mime import QUOTE_MARK, Mail

_LONGEST_ANSWER = 4_000
_LONGEST_LINE = 400

_QUOTED_LINE = re.compile(r"\s*(?:>|\||&gt;)")
_QUOTE_BEGINS = re.compile(
    r"\s*(?:"
    + re.escape(QUOTE_MARK)
    + r"|-{2,}\s*(?:original|forwarded|исходное|пересылаемое|пересланн|ursprüngliche|message d'origine)"
    r"|_{10,}\s*$|-{10,}\s*$|--\s*$|(?:from|от|от кого|von|de|da|sent|отправлено):\s.{0,200}$"
    r"|on .{5,200}(?:wrote|writes):\s*$|am .{5,200}schrieb.{0,100}:\s*$|le .{5,200}a [ée]crit\s*:\s*$"
    r"|el .{5,200}escribi[óo]:\s*$"
    r"|.{0,200}(?:написал|написала|написал\(а\)|пишет|писал\(а\)|wrote|schrieb)\s*:\s*$"
    r"|\d{1,2}[ ./-].{3,60}\d{2,4}.{0,150}(?:<[^<>]{3,200}@[^<>]{3,200}>|@).{0,40}:\s*$"
    r"|\w{2,12},? \d{1,2} .{3,40}, .{0,150}<[^<>]{3,200}@[^<>]{3,200}>.{0,20}:?\s*$"
    r"|sent from my |отправлено (?:из|с) |get outlook for |begin forwarded message"
    r"|confidential(?:ity)?\b|disclaimer\b|if you are not the (?:intended|named)"
    r"|this (?:e-?mail|message|communication)(?: and any\b| is (?:intended|confidential)| may contain)"
    r"|(?:данн|настоящ|эт)\w{2} (?:электронн\w{2} )?(?:письмо|сообщение).{0,60}(?:конфиденциал|предназнач))",
    re.IGNORECASE,
)


def own_words(mail: Mail) -> str:
    """The first part of the answer, up to the quoted letter or the signature."""
    lines = []
    for line, following in _with_next(mail.text[: _LONGEST_ANSWER * 4].splitlines()):
        if _begins_quote(line, following):
            break
        if not _QUOTED_LINE.match(line):
            lines.append(line.strip())
    return "\n".join(lines).strip()[:_LONGEST_ANSWER]


def _begins_quote(line: str, following: str) -> bool:
    """A line that introduces what is quoted is short; it may break before its last word, "wrote:"."""
    if len(line) > _LONGEST_LINE:
        return False
    broken = following.rstrip().endswith(":") and len(following) <= _LONGEST_LINE
    return bool(_QUOTE_BEGINS.match(line) or (broken and _QUOTE_BEGINS.match(f"{line} {following}")))


def _with_next(lines: list[str]) -> list[tuple[str, str]]:
    return list(zip(lines, [*lines[1:], ""], strict=False))
