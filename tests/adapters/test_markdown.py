"""Markdown files become letters: two parts that say the same, variables kept."""

from __future__ import annotations

import pytest

from sendonce.adapters.sources.markdown import markdown_draft, read_markdown
from sendonce.domain.mailouts.blocks import Button, Image, ItemList, Marks, Paragraph
from sendonce.errors import BadInput

FULL = """---
subject: Привет, {{ name | default: "друзья" }}
preheader: "Коротко: {{ name | default: "вам" }}"
from_name: Пекарня
---
# Привет, {{ name }}

Мы **открылись**: [адрес](https://example.com/?u={{ id }}&a=1), <https://example.com/menu>
и <info@example.com>.

- хлеб
- соль
  - крупная

3. три
4. четыре

> цитата
> в две строки

| хлеб | цена |
|---|--:|
| ржаной | {{ price }} |

```
.code {{ code }}
```

![вывеска](https://example.com/sign.png)
"""


def test_the_front_matter_is_read() -> None:
    """Variables need no quotes in it, although YAML would choke on their braces and colons."""
    letter = read_markdown(FULL)
    assert letter.subject == 'Привет, {{ name | default: "друзья" }}'
    assert letter.preheader == 'Коротко: {{ name | default: "вам" }}'
    assert letter.from_name == "Пекарня"


def test_the_plain_text_says_it_all() -> None:
    assert (
        read_markdown(FULL).text
        == """\
Привет, {{ name }}
========{{ name | rule = }}

Мы открылись: адрес (https://example.com/?u={{ id | url }}&a=1), https://example.com/menu и info@example.com.

- хлеб
- соль
  - крупная

3. три
4. четыре

> цитата в две строки

хлеб | цена
ржаной | {{ price }}

    .code {{ code }}

вывеска
"""
    )


def test_the_html_is_a_document_for_mail_programs() -> None:
    html = read_markdown(FULL).html
    assert html.startswith('<!DOCTYPE html>\n<html lang="ru">')
    assert '<title>Привет, {{ name | default: "друзья" }}</title>' in html
    assert "max-width:600px" in html
    assert '<a href="https://example.com/?u={{ id | url }}&amp;a=1" class="link" style=' in html
    assert ">Привет, {{ name }}</h1>" in html
    assert "text-align:right" in html
    assert '<img src="https://example.com/sign.png" alt="вывеска" width="552"' in html
    assert html.rstrip().endswith("</body>\n</html>")
    assert 'lang="en"' in read_markdown("---\nsubject: Hi\n---\nHello").html


def test_html_in_markdown_is_shown_not_run() -> None:
    letter = read_markdown("---\nsubject: x\n---\n<script>alert(1)</script>\n\n[x](javascript:alert(1))")
    assert "<script>" not in letter.html
    assert "&lt;script&gt;" in letter.html
    assert 'href="javascript' not in letter.html
    assert "<script>alert(1)</script>" in letter.text


def test_variables_survive_wherever_they_stand() -> None:
    """In an address they are marked, so that the builder percent-encodes their values."""
    link = "[{{ c }}](https://example.com/{{ d | default: 'x y' }}?e={{ e }})"
    body = f"**{{{{ a }}}}** `{{{{ b }}}}` {link} _{{{{ f }}}}_ ~~{{{{ g }}}}~~"
    letter = read_markdown(f"---\nsubject: x\n---\n{body}\n")
    address = "https://example.com/{{ d | default: 'x y' | url }}?e={{ e | url }}"
    assert letter.text == f"{{{{ a }}}} {{{{ b }}}} {{{{ c }}}} ({address}) {{{{ f }}}} {{{{ g }}}}\n"
    for part in ("<strong>{{ a }}</strong>", ">{{ b }}</code>", f'href="{address}"', "<del>{{ g }}</del>"):
        assert part in letter.html


@pytest.mark.parametrize("address", ["{{ url }}", "https://{{ host }}/x", "https://example.com{{ path }}"])
def test_a_variable_cannot_choose_the_site_of_a_link(address: str) -> None:
    with pytest.raises(BadInput, match=r"Line 5: The address .* has a variable where its site should be"):
        read_markdown(f"---\nsubject: x\n---\nhello\n[x](<{address}>)")


def test_what_cannot_be_mailed_is_left_out_with_a_warning() -> None:
    draft = markdown_draft("---\nsubject: x\n---\n\n[a](page.html)\n\n![b](pic.png)")
    assert [block.text[0].text for block in draft.blocks if isinstance(block, Paragraph)] == ["a", "b"]
    assert "Line 5: the link to 'page.html' was left out" in draft.warnings[0]
    assert "Line 7: the image 'pic.png' was left out" in draft.warnings[1]


def test_a_bold_link_alone_is_a_button() -> None:
    [button, paragraph] = markdown_draft(
        "---\nsubject: x\n---\n**[Buy](https://example.com)**\n\n[Buy](https://example.com)"
    ).blocks
    assert button == Button("Buy", "https://example.com")
    assert isinstance(paragraph, Paragraph)


def test_images_among_words_become_blocks() -> None:
    blocks = markdown_draft("---\nsubject: x\n---\na [![b](https://x.ru/b.png)](https://x.ru) c").blocks
    assert [type(block) for block in blocks] == [Paragraph, Image, Paragraph]
    assert blocks[1] == Image("https://x.ru/b.png", "b", link="https://x.ru")


def test_boxes_are_ticked_or_not() -> None:
    [boxes, bullets] = markdown_draft(
        "---\nsubject: x\n---\n- [x] a\n- [ ] b\n\ntext\n\n- [x] a\n- b"
    ).blocks[::2]
    assert isinstance(boxes, ItemList)
    assert isinstance(bullets, ItemList)
    assert (boxes.marks, [item.checked for item in boxes.items]) == (Marks.BOXES, [True, False])
    assert bullets.marks is Marks.BULLETS


def test_a_tower_of_quotes_is_refused_and_not_cut() -> None:
    """The parser would drop what is in it without a word."""
    with pytest.raises(BadInput, match="nested too deep"):
        read_markdown("---\nsubject: x\n---\n" + "> " * 60 + "deep")
    assert "deep" in read_markdown("---\nsubject: x\n---\n" + "> " * 30 + "deep").text


def test_words_that_look_like_our_stand_ins_are_left_alone() -> None:
    text = read_markdown("---\nsubject: x\n---\nsendoncevariableq0q {{ a }} sendoncevariablexq0q").text
    assert text == "sendoncevariableq0q {{ a }} sendoncevariablexq0q\n"


def test_windows_line_ends_byte_order_mark_and_key_case_do_not_matter() -> None:
    letter = read_markdown("\ufeff---\r\nSubject: 2025\r\nfrom: Колос\r\n...\r\nhello\r\n")
    assert (letter.subject, letter.text, letter.from_name, letter.preheader) == (
        "2025",
        "hello\n",
        "Колос",
        "",
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "Line 1: the file has no front matter"),
        ("# Hello", "Line 1: the file has no front matter"),
        ("---\nsubject: x\n", "Line 1: the front matter is not closed"),
        ("---\npreheader: x\n---\nhello", "Line 1: the front matter has no subject"),
        ("---\nsubject:\n---\nhello", "Line 1: the front matter has no subject"),
        ("---\npreheader: x\nsubject: Sale: 50%\n---\nhello", "Line 3: the front matter is not YAML"),
        ("---\nsubject: 'x\n---\nhello", "the front matter is not YAML"),
        ("---\njust words\n---\nhello", "Line 2: the front matter must be lines"),
        ("---\nsubject: [a, b]\n---\nhello", "subject is not a line of text"),
        ("---\nsubject: x\x07\n---\nhello", "the front matter is not YAML"),
        ("---\nsubject: " + "[" * 5_000 + "\n---\nhello", "the front matter is not YAML"),
        ("---\nsubject: x\n---\nhello {{ name", "Line 4: '{{ name' is not a variable"),
    ],
    ids=range(12),
)
def test_what_is_wrong_is_told_with_its_line(source: str, message: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read_markdown(source)
    assert message in str(refusal.value)


def test_the_front_matter_says_who_is_answered_and_when_it_goes() -> None:
    """Keys in either spelling; the time stays as it is written until somebody knows the zone."""
    matter = "subject: x\nreply-to: hello@example.com\nsend_at: 2026-12-01 09:00\ntext_only: yes"
    draft = markdown_draft(f"---\n{matter}\n---\nhello")
    assert (draft.reply_to, draft.send_at, draft.text_only) == ("hello@example.com", "2026-12-01 09:00", True)
    letter = read_markdown(f"---\n{matter}\n---\nhello")
    assert (letter.reply_to, letter.text_only) == ("hello@example.com", True)
    assert not markdown_draft("---\nsubject: x\n---\nhello").text_only
    with pytest.raises(BadInput, match="text_only is 'perhaps': write true or false"):
        markdown_draft("---\nsubject: x\ntext_only: perhaps\n---\nhello")


def test_the_front_matter_says_in_which_language_the_letter_is() -> None:
    """A word that is no language of ours is told to the author, and not passed over."""
    letter = read_markdown("---\nsubject: Hello\nlanguage: Russian\n---\nПривет")
    assert letter.language == "ru"
    assert read_markdown("---\nsubject: Hello\n---\nhi").language is None
    with pytest.raises(BadInput, match="language is 'klingon': write ru or en"):
        markdown_draft("---\nsubject: x\nlanguage: klingon\n---\nhello")


@pytest.mark.parametrize(
    "quoted",
    [r'"Hi {{ name | default: \"friends\" }}, \"you\""', 'Hi {{ name | default: "friends" }}, "you"'],
)
def test_quotes_in_a_quoted_subject(quoted: str) -> None:
    """What YAML wants escaped is no part of the variable."""
    subject = read_markdown(f"---\nsubject: {quoted}\n---\nhello").subject
    assert subject == 'Hi {{ name | default: "friends" }}, "you"'


@pytest.mark.parametrize(
    "line", ["segment: vip", "to: jane@example.com", "tags: [a, b]", "Subjekt: x", "date: today"]
)
def test_front_matter_that_is_not_honoured_is_refused(line: str) -> None:
    """Its author counts on it: a letter for a few must not go to everybody."""
    with pytest.raises(BadInput, match="does not honour") as refusal:
        read_markdown(f"---\nsubject: x\n{line}\n---\nhello")
    assert repr(line.partition(":")[0].lower()) in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "meant"),
    [("subjct: News", "subject"), ("pre_header: x", "preheader"), ("replyto: x", "reply_to")],
)
def test_a_slip_in_the_front_matter_is_answered_with_the_name_that_was_meant(line: str, meant: str) -> None:
    """Whoever mistyped the subject must not be told to remove it."""
    with pytest.raises(BadInput, match=f"Did you mean {meant}\\?"):
        read_markdown(f"---\n{line}\n---\nhello")


def test_a_yaml_bomb_is_refused_at_no_cost() -> None:
    """Its aliases are never written out."""
    bomb = "\n".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 12))
    with pytest.raises(BadInput, match="does not honour"):
        read_markdown(f"---\nsubject: x\nx0: &x0 [lol]\n{bomb}\n---\nhello")
