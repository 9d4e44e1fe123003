"""Letters from Markdown files with YAML front matter.

    ---
    subject: Новости для вас, {{ name | default: "друзья" }}
    preheader: Коротко о главном
    ---
    # Здравствуйте!

HTML and plain text are made from the same tokens, so neither part can say what the other does not.
Variables are swapped for plain words before YAML and Markdown see them, and put back afterwards: a
``{{ name | default: "x" }}`` may stand in a subject without quotes and inside the address of a link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from sendonce.domain.letters import Letter, language_of
from sendonce.domain.templates import VARIABLE, Template
from sendonce.errors import BadInput

_FENCE = re.compile(r"---[ \t]*\n")
_CLOSING_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)

# Mail programs drop style sheets, so every element carries its own style. No colours but those of
# links, quotes and lines, which read on white and on black: dark modes repaint the rest.
_STYLES = {
    "h1": "margin:0 0 16px;font-size:26px;line-height:32px",
    "h2": "margin:24px 0 12px;font-size:21px;line-height:28px",
    "h3": "margin:20px 0 8px;font-size:18px;line-height:24px",
    "h4": "margin:16px 0 8px;font-size:16px;line-height:24px",
    "h5": "margin:16px 0 8px;font-size:16px;line-height:24px",
    "h6": "margin:16px 0 8px;font-size:16px;line-height:24px",
    "p": "margin:0 0 16px",
    "ul": "margin:0 0 16px;padding-left:24px",
    "ol": "margin:0 0 16px;padding-left:24px",
    "li": "margin:0 0 4px",
    "blockquote": "margin:0 0 16px;padding-left:12px;border-left:3px solid #888888",
    "hr": "margin:24px 0;border:0;border-top:1px solid #888888",
    "a": "color:#2b7de0",
    "img": "max-width:100%;height:auto;border:0",
    "code": "font-family:Consolas,Menlo,monospace;font-size:14px",
    "table": "margin:0 0 16px;border-collapse:collapse",
    "th": "padding:4px 8px;border:1px solid #888888;text-align:left",
    "td": "padding:4px 8px;border:1px solid #888888",
}

_DOCUMENT = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body style="margin:0;padding:0">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0">
<tr><td align="center" style="padding:24px 16px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0" border="0" \
style="width:100%;max-width:600px">
<tr><td align="left" style="font-family:Arial,Helvetica,sans-serif;font-size:16px;line-height:24px">
{content}</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
"""


def read_markdown(text: str) -> Letter:
    """A letter. Raises BadInput, with the line, for what is missing or malformed."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    Template.parse(text)  # complains about a stray {{ with its line in the file
    variables = _Variables(text)
    front, body = _split(variables.hidden)
    matter = _front_matter(front)
    subject = variables.restore(matter.get("subject", ""))
    if not subject:
        raise BadInput(
            "Line 1: the front matter has no subject. Add a line such as\nsubject: Our news in May"
        )
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(body)
    from_name = matter.get("from_name") or matter.get("from")
    return Letter(
        subject=subject,
        preheader=variables.restore(matter.get("preheader", "")),
        html=variables.restore(_html(markdown, tokens, matter["subject"])),
        text=_PlainText(variables).blocks(SyntaxTreeNode(tokens).children) + "\n",
        from_name=variables.restore(from_name) if from_name else None,
    )


class _Variables:
    """Swaps variables for words of lower-case letters and digits, which nothing on the way touches."""

    def __init__(self, text: str) -> None:
        stem = "sendoncevariable"
        while stem in text:
            stem += "x"
        self._sources: list[str] = []
        self._word = re.compile(rf"{stem}q(\d+)q")
        self._stem = stem
        self.hidden = VARIABLE.sub(self._hide, text)

    def _hide(self, match: re.Match[str]) -> str:
        self._sources.append(match[0])
        return f"{self._stem}q{len(self._sources) - 1}q"

    def restore(self, text: str) -> str:
        return self._word.sub(lambda match: self._sources[int(match[1])], text)


def _split(text: str) -> tuple[str, str]:
    opening = _FENCE.match(text)
    if opening is None:
        raise BadInput(
            "Line 1: the file has no front matter. Begin it with\n---\nsubject: Our news in May\n---\n"
            "and put the letter below."
        )
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        raise BadInput("Line 1: the front matter is not closed. Put a line of --- below the subject.")
    return text[opening.end() : closing.start()], text[closing.end() :]


def _front_matter(source: str) -> dict[str, str]:
    try:
        # BaseLoader makes nothing but strings, lists and mappings: a subject of 2025 or «yes» stays text.
        loaded = yaml.load(source, Loader=yaml.BaseLoader)  # noqa: S506
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = mark.line + 2 if mark else 1  # the opening --- is line 1
        raise BadInput(
            f"Line {line}: the front matter is not YAML: {exc.problem}. "
            "If a value contains a colon or begins with a sign, put it in quotes."
        ) from exc
    except (yaml.YAMLError, RecursionError) as exc:  # a forbidden character, or brackets a mile deep
        raise BadInput(f"Line 1: the front matter is not YAML: {exc}.") from exc
    if not isinstance(loaded, dict):
        raise BadInput("Line 2: the front matter must be lines such as\nsubject: Our news in May")
    return {str(key).strip().lower(): _scalar(key, value) for key, value in loaded.items()}


def _scalar(key: object, value: object) -> str:
    """Words of a value on one line. Lists and mappings are other programs' front matter: not ours."""
    if isinstance(value, str):
        return " ".join(value.split())
    if str(key).strip().lower() in {"subject", "preheader", "from_name", "from"}:
        raise BadInput(f"The front matter's {key} is not a line of text. Put it in quotes.")
    return ""


def _html(markdown: MarkdownIt, tokens: Sequence[Token], subject: str) -> str:
    for token in tokens:
        for one in (token, *(token.children or ())):
            _set_style(one)
    content = markdown.renderer.render(tokens, markdown.options, {})
    return _DOCUMENT.format(language=language_of(subject + content), title=escape(subject), content=content)


def _set_style(token: Token) -> None:
    style = _STYLES.get(token.tag)
    if style is None or token.nesting < 0:
        return
    own = token.attrGet("style")  # the alignment of a table's column
    token.attrSet("style", f"{style};{own}" if own else style)


class _PlainText:
    """The same letter for those who read without HTML."""

    def __init__(self, variables: _Variables) -> None:
        self._restore = variables.restore

    def blocks(self, nodes: Sequence[SyntaxTreeNode], separator: str = "\n\n") -> str:
        return separator.join(filter(None, map(self._block, nodes)))

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "heading":
                title = self._inline(node)
                rule = "=" if node.tag == "h1" else "-"
                return f"{title}\n{rule * min(len(title), 60)}" if title else ""
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "blockquote":
                return _indented(self.blocks(node.children), "> ", "> ")
            case "hr":
                return "-" * 20
            case "fence" | "code_block":
                return _indented(self._restore(node.content.rstrip("\n")), "    ", "    ")
            case "table":
                return "\n".join(self._row(row) for part in node.children for row in part.children)
            case _:
                return self._inline(node)

    def _list(self, node: SyntaxTreeNode) -> str:
        number = int(node.attrs.get("start", 1))
        items = []
        for offset, item in enumerate(node.children):
            bullet = "- " if node.type == "bullet_list" else f"{number + offset}. "
            items.append(_indented(self.blocks(item.children, "\n"), bullet, " " * len(bullet)))
        return "\n".join(items)

    def _row(self, row: SyntaxTreeNode) -> str:
        return " | ".join(self._inline(cell) for cell in row.children)

    def _inline(self, node: SyntaxTreeNode) -> str:
        return self._restore("".join(map(self._words, node.children)))

    def _words(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "text" | "code_inline":
                return node.content
            case "softbreak" | "hardbreak":
                return "\n"
            case "link":
                return self._link(node)
            case "image":
                return node.content  # the description; the address of a picture tells a reader nothing
            case _:
                return "".join(map(self._words, node.children))

    def _link(self, node: SyntaxTreeNode) -> str:
        words = "".join(map(self._words, node.children))
        url = str(node.attrs["href"])
        return words if words in ("", url, url.removeprefix("mailto:")) else f"{words} ({url})"


def _indented(text: str, first: str, others: str) -> str:
    lines = [f"{others}{line}".rstrip() for line in text.split("\n")]
    lines[0] = f"{first}{text.partition(chr(10))[0]}".rstrip()
    return "\n".join(lines)
