"""Colours for light and dark, and the sheet that notes which of them a letter uses.

Every element carries its light colours in its own ``style``: Gmail's mobile site drops style sheets.
Apple Mail obeys ``prefers-color-scheme``, and finds the dark ones by class; other programs with a dark
mode repaint the light ones by themselves, for which each background is given together with its ink.
"""

from __future__ import annotations

from typing import NamedTuple

from sendonce.domain.mailouts.blocks import Colour, Paint

SANS = "font-family:Arial,Helvetica,sans-serif;font-size:16px;line-height:25px"
SMALL = "font-size:14px;line-height:21px"
MONO = "font-family:Consolas,Menlo,'Courier New',monospace;font-size:14px;line-height:21px"


class Role(NamedTuple):
    """What a colour is for. Contrast of ink on its ground is at least 4.5:1 (WCAG 2.1 AA), both ways."""

    css: str
    light: str
    dark: str


_INKS = {
    Colour.GRAY: ("#6b6a66", "#a8a7a3"),
    Colour.BROWN: ("#8a5a3e", "#d3a78d"),
    Colour.ORANGE: ("#a95208", "#f0a35e"),
    Colour.YELLOW: ("#866100", "#e5c04b"),
    Colour.GREEN: ("#2f6f4f", "#7cc49a"),
    Colour.BLUE: ("#1f69a0", "#7ab8ea"),
    Colour.PURPLE: ("#7b4a9e", "#c9a6e4"),
    Colour.PINK: ("#a8336f", "#ee97c0"),
    Colour.RED: ("#b8322a", "#f4948b"),
}
_WASHES = {
    Colour.GRAY: ("#f0f0ee", "#323235"),
    Colour.BROWN: ("#f4eeea", "#3f2e26"),
    Colour.ORANGE: ("#fbecdd", "#4a3015"),
    Colour.YELLOW: ("#fbf3db", "#453a14"),
    Colour.GREEN: ("#e8f2ea", "#1f3a2c"),
    Colour.BLUE: ("#e5f1f9", "#17344a"),
    Colour.PURPLE: ("#f3eef8", "#362545"),
    Colour.PINK: ("#f9ecf3", "#45223a"),
    Colour.RED: ("#fdebea", "#4a2220"),
}
ROLES = {
    "page": Role("background-color", "#ffffff", "#1c1c1e"),
    "ink": Role("color", "#1f2328", "#e8e8e6"),
    "muted": Role("color", "#6b6a66", "#a8a7a3"),
    "link": Role("color", "#1a5fb4", "#8ab4f8"),
    "line": Role("border-color", "#d5d5d2", "#4a4a4e"),
    "panel": Role("background-color", "#f5f5f4", "#2a2a2d"),
    **{f"ink-{colour}": Role("color", *pair) for colour, pair in _INKS.items()},
    **{f"wash-{colour}": Role("background-color", *pair) for colour, pair in _WASHES.items()},
}
# The same in both modes: white on it reads, and it stands out from either page.
BUTTON = "#1a5fb4"


def roles_of(paint: Paint) -> tuple[str, ...]:
    roles = []
    if paint.background:
        roles += [f"wash-{paint.background}"]
    if paint.colour:
        roles += [f"ink-{paint.colour}"]
    elif paint.background:
        roles += ["ink"]
    return tuple(roles)


class Sheet:
    """Writes opening tags and remembers what the style sheet has to hold."""

    def __init__(self) -> None:
        self._used = {"muted"}  # the footer's, which the builder adds
        self._columns = False

    def tag(self, name: str, style: str = "", *roles: str, attributes: str = "", css_class: str = "") -> str:
        """``<name …>`` with the light colours of its roles, and classes for the dark ones."""
        self._used.update(roles)
        colours = [f"{ROLES[role].css}:{ROLES[role].light}" for role in roles]
        declarations = ";".join([*filter(None, [style]), *colours])
        classes = " ".join([*filter(None, [css_class]), *roles])
        written = [name]
        written += [attributes] if attributes else []
        written += [f'class="{classes}"'] if classes else []
        written += [f'style="{declarations}"'] if declarations else []
        return f"<{' '.join(written)}>"

    def table(self, style: str = "", *roles: str, attributes: str = 'width="100%"') -> str:
        """A table for layout, which screen readers pass over."""
        bare = 'role="presentation" cellpadding="0" cellspacing="0" border="0"'
        return self.tag("table", style, *roles, attributes=f"{bare} {attributes}".strip())

    def column(self, width: int) -> str:
        """The opening of a column that goes below its neighbour where there is no room for both."""
        self._columns = True
        style = f"display:inline-block;width:100%;max-width:{width}px;vertical-align:top"
        return self.tag("div", style, css_class="column")

    def css(self) -> str:
        rules = []
        if self._columns:
            rules.append("@media (max-width:599px){.column{max-width:100%!important}}")
        dark = "".join(
            f".{role}{{{ROLES[role].css}:{ROLES[role].dark}!important}}"
            for role in ROLES
            if role in self._used
        )
        rules.append(f"@media (prefers-color-scheme:dark){{{dark}}}")
        return "\n".join(rules)
