"""HTML files become letters: their words, links and images, and none of their markup."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.sources.html import html_draft, read_html
from sendonce.domain.mailouts.blocks import (
    Block,
    Button,
    Code,
    Divider,
    Heading,
    Image,
    ItemList,
    Marks,
    Paragraph,
    Quote,
    Span,
    Table,
    Toggle,
    plain,
)
from sendonce.domain.mailouts.rendering import compose
from sendonce.errors import BadInput
from tests.golden.support import Features


def blocks(body: str) -> tuple[Block, ...]:
    return html_draft(f"<title>x</title>{body}").blocks


def test_title_and_description_are_subject_and_preheader() -> None:
    draft = html_draft(
        "<html><head><title> Наши\n новости, {{ name }} </title>"
        '<meta name="Description" content="Коротко &amp; ясно"></head><body>Привет</body></html>'
    )
    assert (draft.subject, draft.preheader) == ("Наши новости, {{ name }}", "Коротко & ясно")
    assert draft.blocks == (Paragraph((Span("Привет"),)),)


def test_front_matter_wins_and_lines_are_counted_from_the_top() -> None:
    draft = html_draft("---\nsubject: A\npreheader: B\nfrom: C\n---\n<title>no</title>\n<blink>x</blink>")
    assert (draft.subject, draft.preheader, draft.from_name) == ("A", "B", "C")
    assert draft.warnings == ("Line 7: <blink> is not known; its words were kept.",)


def test_the_front_matter_says_who_is_answered_and_when_it_goes() -> None:
    """As above a letter in Markdown."""
    matter = "subject: A\nreply_to: hello@example.com\nsend_at: 2026-12-01 09:00\ntext_only: yes"
    draft = html_draft(f"---\n{matter}\n---\n<p>hello")
    assert (draft.reply_to, draft.send_at, draft.text_only) == ("hello@example.com", "2026-12-01 09:00", True)


def test_a_file_without_a_subject_is_refused() -> None:
    with pytest.raises(BadInput, match="no <title>"):
        html_draft("<p>hello")


def test_styles_and_spaces_are_read_as_browsers_do() -> None:
    [paragraph] = blocks(
        "<p>a\n  <b>b </b> <i>c</i><span style='font-weight: 700'>d</span><br> e <u>f</u><s>g</s>"
    )
    assert paragraph == Paragraph(
        (
            Span("a "),
            Span("b ", bold=True),
            Span("c", italic=True),
            Span("d", bold=True),
            Span("\ne "),
            Span("f", underline=True),
            Span("g", strike=True),
        )
    )


def test_each_kind_of_block() -> None:
    found = blocks(
        "<h2>h</h2><ul><li>a<ul><li>b</ul><li>c</ul><ol start=3 type=a><li>d</ol>"
        "<blockquote><p>q</blockquote><pre>x\n  y</pre><hr><p><a href='https://x.ru'><b>Buy</b></a></p>"
        "<img src='https://x.ru/a.png' alt=A width=300>"
        "<details><summary>s</summary>t</details><dl><dt>u<dd>v</dl>"
    )
    kinds = [Heading, ItemList, ItemList, Quote, Code, Divider, Button, Image, Toggle, Paragraph]
    assert [type(block) for block in found[:10]] == kinds
    assert isinstance(found[1], ItemList)
    assert isinstance(found[2], ItemList)
    assert [type(block) for block in found[1].items[0].blocks] == [Paragraph, ItemList]
    assert (found[2].marks, found[2].start) == (Marks.LETTERS, 3)
    assert found[4] == Code("x\n  y")
    assert found[7] == Image("https://x.ru/a.png", "A", width=300)


def test_tables_of_data_stay_and_tables_of_layout_go() -> None:
    [table] = blocks("<table><tr><th>a<th>b<tr><td>1<td><b>2</b></table>")
    assert table == Table((((Span("a"),), (Span("b"),)), ((Span("1"),), (Span("2", bold=True),))), True)
    layout = blocks(
        "<table><tr><td><table><tr><td><h1>a</h1></td></tr><tr><td>b</td></tr></table></td></tr></table>"
    )
    assert [type(block) for block in layout] == [Heading, Paragraph]


def test_nothing_that_runs_or_hides_gets_through() -> None:
    draft = html_draft(
        "<title>x</title><script>alert(1)</script><style>p{}</style><form>f<input></form>"
        "<iframe src=x>i</iframe>"
        "<svg onload=alert(1)><p>s</svg><div style='display:NONE'>h</div><p onclick=alert(1)>kept</p>"
        "<a href='javascript:alert(1)'>j</a><img src='data:image/png;base64,x' alt=alt>"
        "<img src=https://x.ru/p width=1>"
    )
    letter = compose(draft).letter
    assert letter.text == "kept\n\nj\n\nalt\n"
    assert "alert" not in letter.html
    said = " ".join(draft.warnings)
    for what in ("<script>", "<form>", "<iframe>", "<svg>", "<div>", "javascript", "data:", "one pixel"):
        assert what in said


def test_variables_survive_quotes_and_tags() -> None:
    letter = read_html(
        "<title>x</title><p>Hi {{ na<b>me }}</b>! {{ a | default: &quot;b&quot; }}"
        """<a href="https://x.ru/?n={{ name | default: "you & me" }}">go</a>"""
    )
    assert 'Hi {{ name }}! {{ a | default: "b" }}' in letter.text
    assert 'go (https://x.ru/?n={{ name | default: "you & me" | url }})' in letter.text
    assert 'href="https://x.ru/?n={{ name | default: "you & me" | url }}"' in letter.html


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<p>\n\n<a href='{{ url }}'>x</a>", "Line 3: The address '{{ url }}' has a variable"),
        ("<p>hello {{ name</p>", "Near “hello {{ name”: '{{ name' is not a variable"),
        ("x" * 500_001, "more than any letter"),
    ],
)
def test_what_is_wrong_is_told(body: str, message: str) -> None:
    with pytest.raises(BadInput) as refusal:
        blocks(body)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "<a ",
        "<div>",
        "</",
        "<![",
        "<a b='",
        "&",
        "<?",
        '<p title="x',
        "<ul><li>",
        "<blockquote>",
        "<b>",
        "<table><tr><td>",
    ],
)
def test_hostile_files_take_no_time(piece: str) -> None:
    """Linear in their length, and never too deep: each of these hangs or breaks some parser."""
    started = time.process_time()
    read_html("<title>x</title>" + piece * (100_000 // len(piece)) + "end")
    assert time.process_time() - started < 5


def test_what_is_nested_beyond_measure_keeps_its_words() -> None:
    assert "deep" in read_html("<title>x</title>" + "<blockquote>" * 5_000 + "deep").text
    assert "deep" in read_html("<title>x</title>" + "<ul><li>" * 5_000 + "deep").text


def test_the_same_warning_comes_once_and_many_are_cut() -> None:
    draft = html_draft("<title>x</title><foo>a</foo>\n<foo>b</foo>")
    assert draft.warnings == ("Line 1: <foo> is not known; its words were kept. (2 times)",)
    many = html_draft("<title>x</title>" + "".join(f"<x{n}>" for n in range(50)))
    assert len(many.warnings) == 31
    assert many.warnings[-1] == "And 20 more."


TAGS = [
    "p",
    "b",
    "a href='https://x.ru/?{{ a }}'",
    "a href=javascript:x",
    "img src=https://x.ru/a",
    "table",
    "td",
    "tr",
    "th",
]
TAGS += [
    "ul",
    "ol start=2",
    "li",
    "blockquote",
    "h1",
    "pre",
    "script",
    "style",
    "details",
    "summary",
    'foo bar="<"',
    "hr",
    "br",
]
PIECES = st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag.split()[0]}>" for tag in TAGS]) | st.text(
    max_size=6
)


@settings(max_examples=120, deadline=None)
@given(st.lists(PIECES, max_size=25))
def test_whatever_comes_in_our_own_markup_goes_out(pieces: list[str]) -> None:
    try:
        letter = read_html("<title>x</title>" + "".join(pieces))
    except BadInput:
        return
    features = Features(letter.html)
    assert not features.unknown
    assert "javascript:x" not in letter.html


def test_words_between_blocks_are_paragraphs() -> None:
    found = blocks("<div>one <p>two</p> three</div><center>four</center>")
    assert [plain(block.text) for block in found if isinstance(block, Paragraph)] == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_styling_that_is_lost_is_told_once() -> None:
    """Colours, fonts and widths are ours; what is kept of a style needs no word."""
    text = (
        '<title>x</title><style>p{color:red}</style><p style="color:#f00; font-weight:bold">a</p>'
        '<table bgcolor="#eee"><tr><td width="50%">b</td></tr></table><font face="Arial">c</font>'
    )
    (warning,) = html_draft(text).warnings
    assert "styling (colours, fonts, widths) is not kept. (4 times)" in warning
    assert html_draft('<title>x</title><p style="font-weight:bold;">a <b>b</b></p>').warnings == ()
