"""Which features of HTML and CSS our letters use, and which mail programs know them (caniemail.com)."""

from __future__ import annotations

import email
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.mailouts.rendering import render
from tests.golden.cases import BLOCKS, copies
from tests.golden.sample_letter import SAMPLE_SUBJECT, sample_blocks

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "caniemail.json"
BASELINE = Path(__file__).parent / "caniemail_baseline.json"
PROGRAMS = {"gmail": None, "outlook": {"windows"}, "apple-mail": None, "yahoo": None, "mail-ru": None}

Support = dict[str, dict[str, object]]

# Features that caniemail has no entry for: in use since HTML 3.2 and CSS 1, or read by one program only.
UNLISTED_TAGS = {"html", "head", "title", "meta", "br", "em", "u", "a"}
UNLISTED_ATTRIBUTES = {"href", "src", "alt", "class", "style", "border", "bgcolor", "start", "type"}
UNLISTED_ATTRIBUTES |= {"charset", "name", "content"}
UNLISTED_PROPERTIES = {"color", "font-family", "font-style", "mso-padding-alt", "mso-hide"}

TAGS = {
    tag: f"html-{tag}" for tag in ("body", "code", "del", "div", "img", "p", "pre", "span", "strong", "style")
}
TAGS |= {"ul": "html-lists", "ol": "html-lists", "li": "html-lists"}
TAGS |= dict.fromkeys(("table", "tr", "td", "th"), "html-table")
TAGS |= dict.fromkeys(("h1", "h2", "h3", "h4"), "html-h1-h6")
ATTRIBUTES = {
    name: f"html-{name}" for name in ("align", "cellpadding", "cellspacing", "height", "lang", "role")
}
ATTRIBUTES |= {"valign": "html-valign", "width": "html-width"}
SHORTHANDS = {"border-left": "border", "border-top": "border", "border-color": "border"}

WHY = {
    "css-at-media": "Only improves: without it columns keep the width of the letter and colours stay light.",
    "css-at-media-prefers-color-scheme": "Only improves: others repaint the light colours by themselves.",
    "css-border-radius": "Corners are square instead of round.",
    "css-display-none": "The preheader stays hidden by its height, width and opacity of zero.",
    "css-height": "Images keep their proportions without it, since their height attribute is not set.",
    "css-max-height": "Outlook hides the preheader by mso-hide.",
    "css-opacity": "One of several ways to hide the preheader.",
    "css-overflow": "One of several ways to hide the preheader.",
    "css-selector-class": "Classes carry the dark colours and nothing else; the light ones are inline.",
    "css-white-space": "Long lines of code do not wrap; pre keeps the others.",
    "css-word-break": "A very long word may be wider than the screen.",
    "css-word-wrap": "A very long word of code may be wider than its frame.",
    "html-body": "Its colours are those of the table inside it as well.",
    "html-doctype": "The letter looks the same in quirks mode: every cell has its own font.",
    "html-meta-color-scheme": "Only improves: tells Apple Mail that dark colours are at hand.",
    "html-style": "Only improves: what must be seen is inline.",
}


def built_letters() -> list[str]:
    """HTML as recipients get it, footer and preheader included: the sample, and each block by itself."""
    from sendonce.adapters.notion.blocks import convert_blocks

    trees = [sample_blocks(), *(convert_blocks(blocks).blocks for blocks in BLOCKS.values())]
    return [built_html(render(tree, title=SAMPLE_SUBJECT, hosted=copies(tree)).html) for tree in trees]


def built_html(html: str) -> str:
    settings = MessageSettings(
        from_address="news@example.com",
        from_name=None,
        reply_to=None,
        footer_address="Пекарня «Колос»\nСамара, ул. Ленина, 1",
        base_url="https://mail.example.com",
        message_id_domain="mail.example.com",
        unsubscribe_secret=b"x" * 32,
    )
    letter = Letter(SAMPLE_SUBJECT, "Скидка 20 % до 15 мая", html, "")
    raw = compile_letter(letter, settings, "mailout").build(
        "0198c5a1-7b1e-7cc3-9d50-0242ac120002",
        "anna@example.org",
        {"name": "Анна", "id": "7"},
        datetime(2025, 5, 1, tzinfo=UTC),
    )
    part = email.message_from_bytes(raw).get_payload()[1]
    return part.get_payload(decode=True).decode()


class Features(HTMLParser):
    """Collects what a page uses, as slugs of caniemail. What has neither slug nor excuse is ``unknown``."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.slugs: set[str] = set()
        self.unknown: set[str] = set()
        self._in_style = False
        self.feed(html)

    def handle_decl(self, decl: str) -> None:
        self.slugs.add("html-doctype")

    def handle_comment(self, data: str) -> None:
        self.slugs.add("html-comments")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        self._note(tag, TAGS, UNLISTED_TAGS)
        for name, value in attrs:
            self._note(name, ATTRIBUTES, UNLISTED_ATTRIBUTES)
            if name == "style":
                self._declarations(value or "")
            elif (name, value) == ("name", "color-scheme"):
                self.slugs.add("html-meta-color-scheme")
            elif name == "src":
                extension = re.search(r"\.(\w+)(?:\?|$)", value or "")
                self.slugs |= {f"image-{extension[1]}"} if extension else set()

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            return
        self.slugs |= {f"css-at-{name}" for name in re.findall(r"@([\w-]+)", data)}
        if "prefers-color-scheme" in data:
            self.slugs.add("css-at-media-prefers-color-scheme")
        for selector, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", data):
            self.slugs |= (
                {"css-selector-class"} if selector.strip().startswith(".") else {f"selector {selector}"}
            )
            self._declarations(declarations)

    def _declarations(self, css: str) -> None:
        for declaration in filter(None, css.split(";")):
            name, _, value = declaration.partition(":")
            name = SHORTHANDS.get(name.strip(), name.strip())
            self.unknown |= set() if value else {declaration}
            if name not in UNLISTED_PROPERTIES:
                self.slugs.add(f"css-{name}")
            self.slugs |= {"css-important"} if "!important" in value else set()
            self.slugs |= {"css-display-none"} if (name, value) == ("display", "none") else set()
            units = {"px": "css-unit-px", "%": "css-unit-percent"}
            for unit in re.findall(r"\d(px|%|[a-z]+)", re.sub("#[0-9a-f]+", "", value)):
                self._note(unit, units, set())

    def _note(self, name: str, slugs: dict[str, str], unlisted: set[str]) -> None:
        if name in slugs:
            self.slugs.add(slugs[name])
        elif name not in unlisted:
            self.unknown.add(name)


def used_features() -> tuple[set[str], set[str]]:
    pages = [Features(html) for html in built_letters()]
    return set().union(*(page.slugs for page in pages)), set().union(*(page.unknown for page in pages))


def support_of(slugs: set[str]) -> Support:
    """What the corpus says now of each feature, for the programs we promise; the newest version counts."""
    known = {entry["slug"]: entry for entry in json.loads(CORPUS.read_text(encoding="utf-8"))["data"]}
    support: Support = {}
    for slug in sorted(slugs):
        verdicts = {
            f"{family}.{platform}": list(versions.values())[-1][0]
            for family, only in PROGRAMS.items()
            for platform, versions in known[slug]["stats"].get(family, {}).items()
            if only is None or platform in only
        }
        support[slug] = {
            "unsupported": sorted(program for program, verdict in verdicts.items() if verdict == "n"),
            "partial": sorted(program for program, verdict in verdicts.items() if verdict == "a"),
        }
        if support[slug]["unsupported"]:
            support[slug]["why it is harmless"] = WHY.get(slug, "")
    return support


def write_support_baseline() -> str:
    if not CORPUS.exists():
        return "caniemail.json is not beside this checkout; the baseline stays as it is"
    slugs, _ = used_features()
    text = json.dumps(support_of(slugs), indent=1, ensure_ascii=False) + "\n"
    BASELINE.write_text(text, encoding="utf-8")
    return f"{len(slugs)} features in {BASELINE.name}"
