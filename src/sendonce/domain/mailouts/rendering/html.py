"""HTML as mail programs want it: tables, inline styles, 600 pixels.

Outlook for Windows draws with Word. It knows padding only on table cells and ``display`` hardly at all,
so whatever has a ground or a border is a table, and columns get a second table that only it reads
(``[if mso]``). Margins of paragraphs, headings, lists and ``div`` work everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.mailouts.blocks import (
    Block,
    Button,
    Callout,
    Code,
    Columns,
    Divider,
    Equation,
    Heading,
    Image,
    Indent,
    Item,
    ItemList,
    LinkCard,
    Marks,
    Paragraph,
    Quote,
    RichText,
    Table,
    Toggle,
    plain,
)
from sendonce.domain.mailouts.rendering.hosting import Hosting
from sendonce.domain.mailouts.rendering.inline import html_inline, html_text, html_words
from sendonce.domain.mailouts.rendering.styles import BUTTON, MONO, SANS, SMALL, Sheet, roles_of

_LETTER_WIDTH = 600
_SIDE = 24
_STEP = 24
_GUTTER = 16
_NARROWEST = 40
_ROOM, _NONE = "16px", "0"

_HEADINGS = {
    1: "margin:8px 0 16px;font-size:28px;line-height:34px",
    2: "margin:28px 0 12px;font-size:22px;line-height:28px",
    3: "margin:24px 0 8px;font-size:18px;line-height:25px",
    4: "margin:20px 0 8px;font-size:16px;line-height:25px",
}
_LEFT, _CENTERED, _TOP = 'align="left"', 'align="center"', 'valign="top"'
_LIST_TYPES = {Marks.LETTERS: ' type="a"', Marks.ROMAN: ' type="i"'}

_DOCUMENT = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{title}</title>
<style>
{css}
</style>
</head>
{body}
</body>
</html>
"""


def html_document(blocks: Sequence[Block], hosting: Hosting, title: str, language: str) -> str:
    """The whole page. The builder adds preheader and footer inside its body."""
    sheet = Sheet()
    content = HtmlBlocks(sheet, hosting).blocks(blocks, _LETTER_WIDTH - 2 * _SIDE)
    body = _page(sheet, content)
    return _DOCUMENT.format(language=language, title=html_text(title), css=sheet.css(), body=body)


def _page(sheet: Sheet, content: str) -> str:
    """A table of fixed width around the fluid one, for Word: it cannot shrink a table to a maximum."""
    frame = sheet.table(attributes=f'width="{_LETTER_WIDTH}"')
    cell = f"padding:0 {_SIDE}px;{SANS};word-break:break-word"
    return (
        f"{sheet.tag('body', 'margin:0;padding:0', 'page', 'ink')}\n"
        f"{sheet.table('', 'page')}<tr>{sheet.tag('td', 'padding:24px 0', attributes=_CENTERED)}\n"
        f"<!--[if mso]>{frame}<tr><td><![endif]-->\n"
        f"{sheet.table(f'max-width:{_LETTER_WIDTH}px')}\n"
        f"<tr>{sheet.tag('td', cell, 'ink', attributes=_LEFT)}\n{content}\n</td></tr>\n</table>\n"
        "<!--[if mso]></td></tr></table><![endif]-->\n</td></tr></table>"
    )


class HtmlBlocks:
    """Writes blocks. ``width`` is the room they have, which images and columns need in pixels."""

    def __init__(self, sheet: Sheet, hosting: Hosting) -> None:
        self._sheet = sheet
        self._hosting = hosting

    def blocks(self, blocks: Sequence[Block], width: int, *, framed: bool = False) -> str:
        """``framed``: the last of them needs no room below it, its frame has that."""
        width = max(width, _NARROWEST)
        last = len(blocks) - 1 if framed else len(blocks)
        written = (self._block(block, width, _NONE if n == last else _ROOM) for n, block in enumerate(blocks))
        return "\n".join(filter(None, written))

    def _block(self, block: Block, width: int, below: str) -> str:
        match block:
            case Paragraph():
                return self._painted("p", f"margin:0 0 {below}", block.text, *roles_of(block.paint))
            case Heading():
                level = min(max(block.level, 1), 4)
                return self._painted(f"h{level}", _HEADINGS[level], block.text, *roles_of(block.paint))
            case ItemList():
                boxes = block.marks is Marks.BOXES
                return self._boxes(block, width) if boxes else self._list(block, width, below)
            case Indent():
                return self._indented(block.blocks, width)
            case Divider():
                line = self._sheet.tag(
                    "td", "border-top:1px solid;font-size:0;line-height:0", "line", attributes='height="1"'
                )
                return self._spaced(f"{self._sheet.table()}<tr>{line}&nbsp;</td></tr></table>", "24px 0")
            case Equation():
                words = f'<em style="font-family:Georgia,serif">{html_words(block.expression)}</em>'
                return f'<p style="margin:0 0 16px;text-align:center">{words}</p>'
            case Table():
                return self._table(block)
            case Image() | LinkCard() | Button():
                return self._pointer(block, width)
            case Quote() | Callout() | Toggle() | Code() | Columns():
                return self._framed(block, width)

    def _pointer(self, block: Image | LinkCard | Button, width: int) -> str:
        match block:
            case Image():
                return self._image(block, width)
            case LinkCard():
                return self._card(block)
            case Button():
                return self._button(block)

    def _framed(self, block: Quote | Callout | Toggle | Code | Columns, width: int) -> str:
        match block:
            case Quote():
                return self._quote(block, width)
            case Callout():
                return self._callout(block, width)
            case Toggle():
                return self._toggle(block, width)
            case Code():
                return self._code(block)
            case Columns():
                return self._columns(block, width)

    # --- text -----------------------------------------------------------------------------------

    def _painted(self, tag: str, style: str, text: RichText, *roles: str) -> str:
        words = self._inline(text)
        return f"{self._sheet.tag(tag, style, *roles)}{words}</{tag}>" if words.strip() else ""

    def _inline(self, text: RichText) -> str:
        return html_inline(self._sheet, text)

    def _caption(self, text: RichText) -> str:
        return self._painted("p", f"margin:6px 0 0;{SMALL}", text, "muted")

    def _spaced(self, content: str, margin: str = "0 0 16px") -> str:
        return f'<div style="margin:{margin}">{content}</div>'

    # --- lists ----------------------------------------------------------------------------------

    def _list(self, block: ItemList, width: int, below: str) -> str:
        items = "\n".join(self._item(item, width - _STEP) for item in block.items)
        tag, attributes = "ul", ""
        if block.marks is not Marks.BULLETS:
            start = f' start="{block.start}"' if block.start != 1 else ""
            tag, attributes = "ol", (_LIST_TYPES.get(block.marks, "") + start).strip()
        style = f"margin:0 0 {below};padding:0 0 0 {_STEP}px"
        return f"{self._sheet.tag(tag, style, attributes=attributes)}\n{items}\n</{tag}>"

    def _item(self, item: Item, width: int) -> str:
        opening = self._sheet.tag("li", "margin:0 0 6px", *roles_of(item.paint))
        return f"{opening}{self._item_content(item, width)}</li>"

    def _item_content(self, item: Item, width: int) -> str:
        """An item begins with its words, without the margins of a paragraph."""
        match item.blocks:
            case (Paragraph(text), *rest):
                more = self.blocks(rest, width, framed=True)
                return self._inline(text) + (f'<div style="margin:6px 0 0">{more}</div>' if more else "")
            case _:
                return self.blocks(item.blocks, width, framed=True)

    def _boxes(self, block: ItemList, width: int) -> str:
        """Outlook for Windows has no checkboxes, so they are letters."""
        rows = "\n".join(self._box(item, width - 28) for item in block.items)
        return self._spaced(f"{self._sheet.table()}\n{rows}\n</table>")

    def _box(self, item: Item, width: int) -> str:
        cell = f"padding:0 0 6px;{SANS}"
        roles = roles_of(item.paint) or ("ink",)
        mark = self._sheet.tag("td", cell, *roles, attributes='width="28" valign="top"')
        words = self._sheet.tag("td", cell, *roles, attributes=_TOP)
        box = "☑" if item.checked else "☐"
        return f"<tr>{mark}{box}</td>{words}{self._item_content(item, width)}</td></tr>"

    # --- what has a ground or a border ----------------------------------------------------------

    def _indented(self, blocks: Sequence[Block], width: int) -> str:
        content = self.blocks(blocks, width - _STEP)
        cell = self._sheet.tag("td", f"padding:0 0 0 {_STEP}px;{SANS}", "ink")
        return f"{self._sheet.table()}<tr>{cell}\n{content}\n</td></tr></table>" if content else ""

    def _quote(self, block: Quote, width: int) -> str:
        roles = roles_of(block.paint) or ("ink",)
        inside = "12px" if block.paint.background else "2px"
        cell = self._sheet.tag("td", f"padding:{inside} 16px;border-left:3px solid;{SANS}", *roles, "line")
        content = self.blocks(block.blocks, width - 35, framed=True)
        return self._spaced(f"{self._sheet.table()}<tr>{cell}\n{content}\n</td></tr></table>")

    def _callout(self, block: Callout, width: int) -> str:
        roles = roles_of(block.paint)
        if not block.paint.background:
            roles = ("panel", *(roles or ("ink",)))
        table = self._sheet.table("border-radius:6px", roles[0])
        icon = ""
        if block.icon:
            opening = self._sheet.tag(
                "td", f"padding:14px 0 14px 16px;{SANS}", *roles[1:], attributes='width="28" valign="top"'
            )
            icon = f"{opening}{html_text(block.icon)}</td>"
        left = 8 if block.icon else 16
        cell = self._sheet.tag("td", f"padding:14px 16px 14px {left}px;{SANS}", *roles[1:], attributes=_TOP)
        content = self.blocks(block.blocks, width - 32 - (36 if block.icon else 0), framed=True)
        return self._spaced(f"{table}<tr>{icon}{cell}\n{content}\n</td></tr></table>")

    def _toggle(self, block: Toggle, width: int) -> str:
        title = self._sheet.tag("p", "margin:0 0 8px", *roles_of(block.paint))
        return f"{title}▾ {self._inline(block.title)}</p>\n{self._indented(block.blocks, width)}".rstrip()

    def _code(self, block: Code) -> str:
        """Word keeps the lines of ``pre`` but wraps none that is too long."""
        cell = self._sheet.tag("td", "padding:12px 16px", "ink")
        pre = f'<pre style="margin:0;{MONO};white-space:pre-wrap;word-wrap:break-word">'
        table = self._sheet.table("border-radius:6px", "panel")
        content = f"{table}<tr>{cell}{pre}{html_text(block.text)}</pre></td></tr></table>"
        return self._spaced(content + self._caption(block.caption))

    def _columns(self, block: Columns, width: int) -> str:
        """Columns side by side that go one below the other when the screen is narrower than they."""
        total = sum(column.share for column in block.columns) or 1
        opening = f"<!--[if mso]>{self._sheet.table()}<tr><![endif]-->"
        written = [opening]
        for number, column in enumerate(block.columns, 1):
            room = int(width * column.share / total)
            gutter = _GUTTER if number < len(block.columns) else 0
            cell = self._sheet.tag("td", f"padding:0 {gutter}px 0 0;{SANS}", "ink", attributes=_TOP)
            content = self.blocks(column.blocks, room - gutter)
            written.append(
                f'<!--[if mso]><td width="{room}" valign="top"><![endif]-->{self._sheet.column(room)}'
                f"{self._sheet.table()}<tr>{cell}\n{content}\n</td></tr></table></div>"
                "<!--[if mso]></td><![endif]-->"
            )
        return "".join([*written, "<!--[if mso]></tr></table><![endif]-->"])

    def _table(self, block: Table) -> str:
        rows = "\n".join(self._row(block, number) for number in range(len(block.rows)))
        opening = self._sheet.tag(
            "table",
            "border-collapse:collapse",
            attributes='width="100%" cellpadding="0" cellspacing="0" border="0"',
        )
        return self._spaced(f"{opening}\n{rows}\n</table>")

    def _row(self, block: Table, number: int) -> str:
        cells = []
        for column, text in enumerate(block.rows[number]):
            heads = (block.header_row and number == 0) or (block.header_column and column == 0)
            tag = "th" if heads else "td"
            align = block.aligns[column] if column < len(block.aligns) else "left"
            style = f"padding:8px 12px;border:1px solid;{SANS};text-align:{align}"
            roles = ("panel", "ink", "line") if heads else ("ink", "line")
            opening = self._sheet.tag(tag, style, *roles, attributes=f'align="{align}" valign="top"')
            cells.append(f"{opening}{self._inline(text) or '&nbsp;'}</{tag}>")
        return f"<tr>{''.join(cells)}</tr>"

    # --- what points outside --------------------------------------------------------------------

    def _image(self, block: Image, width: int) -> str:
        place = self._hosting.place(block)
        if place is None:
            return self._painted("p", f"margin:0 0 16px;{SMALL}", block.caption, "muted")
        natural = place.width or block.width
        shown = min(natural, width) if natural else width
        # Word takes the attribute; the others take the style, which never enlarges an image.
        own = f"{shown}px" if natural else "auto"
        style = f"display:block;width:{own};max-width:100%;height:auto;border:0"
        image = self._sheet.tag(
            "img",
            style,
            attributes=f'src="{html_text(place.url)}" alt="{html_text(block.alt)}" width="{shown}"',
        )
        if block.link:
            image = f'<a href="{html_text(block.link)}">{image}</a>'
        return self._spaced(image + self._caption(block.caption))

    def _card(self, block: LinkCard) -> str:
        place = self._hosting.place(block)
        if place is None:
            return ""
        cell = self._sheet.tag(
            "td", f"padding:12px 16px;border:1px solid;border-radius:6px;{SANS}", "ink", "line"
        )
        link = self._sheet.tag(
            "a", "text-decoration:none", "link", attributes=f'href="{html_text(place.url)}"'
        )
        words = html_words(block.title or " ".join(plain(block.caption).split()) or place.url)
        notes = self._painted("p", f"margin:4px 0 0;{SMALL}", block.caption, "muted") if block.title else ""
        if (block.title or block.caption) and not block.expires:
            notes += f"{self._sheet.tag('p', f'margin:4px 0 0;{SMALL}', 'muted')}{html_text(place.url)}</p>"
        card = f"{link}<strong>{words}</strong></a>{notes}"
        return self._spaced(f"{self._sheet.table()}<tr>{cell}{card}</td></tr></table>")

    def _button(self, block: Button) -> str:
        """Word ignores the padding of a link, and takes the cell's ``mso-padding-alt`` for it."""
        ground = f"background-color:{BUTTON};border-radius:6px"
        cell = f'<td align="center" bgcolor="{BUTTON}" style="{ground};mso-padding-alt:12px 24px">'
        link = (
            f'<a href="{html_text(block.url)}" style="display:inline-block;padding:12px 24px;{SANS};'
            f'color:#ffffff;text-decoration:none"><strong>{html_words(block.text)}</strong></a>'
        )
        return self._spaced(
            f"{self._sheet.table(attributes='')}<tr>{cell}{link}</td></tr></table>", "8px 0 24px"
        )
