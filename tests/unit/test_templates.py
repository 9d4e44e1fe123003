"""Templates: variables with fallbacks and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.engine.templates import Template, Variable, half_written
from sendonce.errors import BadInput


@pytest.mark.parametrize(
    ("source", "variable"),
    [
        ("{{ name }}", Variable("name")),
        ("{{name}}", Variable("name")),
        ("{{ Name }}", Variable("name")),
        ("{{ имя }}", Variable("имя")),
        ('{{ name | default: "друзья" }}', Variable("name", "друзья")),
        ("{{ name|default:'O\"Hara' }}", Variable("name", 'O"Hara')),
        ("{{ name | default: “друзья” }}", Variable("name", "друзья")),
        ("{{ name | default: «друзья» }}", Variable("name", "друзья")),
        ('{{ name | default: "" }}', Variable("name", "")),
        ('{{ name | default: "}}" }}', Variable("name", "}}")),
    ],
)
def test_a_variable_is_read(source: str, variable: Variable) -> None:
    assert Template.parse(source).parts == (variable,)
    assert Template.parse(f"a {source} b").parts == ("a ", variable, " b")


@pytest.mark.parametrize(
    "source",
    [
        "{{",
        "{{ }}",
        "{{ name",
        "{{ name }",
        "{{ 7*7 }}",
        "{{ ''.__class__ }}",
        "{{ name | upper }}",
        "{{ name | default }}",
        "{{ name | default: друзья }}",
        '{{ name | default: "a" | default: "b" }}',
        "{{ first name }}",
        "{{ 1st }}",
    ],
)
def test_anything_else_in_double_braces_is_refused_with_its_line(source: str) -> None:
    with pytest.raises(BadInput, match="Line 3: "):
        Template.parse(f"first\n{{{{ fine }}}}\n{source}\n")


def test_style_sheets_may_end_in_two_braces() -> None:
    source = "@media print{p{color:red}}"
    assert Template.parse(source).parts == (source,)


def test_variables_are_listed_once_in_order() -> None:
    assert Template.parse("{{ b }}{{ a }}{{ B | default: 'x' }}").variables() == ["b", "a"]


def test_what_has_neither_value_nor_default_is_missing() -> None:
    """An empty value counts as none, so the default applies to it."""
    template = Template.parse("{{ name | default: 'you' }} {{ city }} {{ plan }} {{ city }}")
    assert template.missing({"name": "", "city": "", "plan": "x"}) == ["city"]
    assert template.missing({"city": "Тверь"}) == ["plan"]
    assert Variable("name", "you").resolve({"name": ""}) == "you"
    assert Variable("name", "").resolve({}) == ""
    assert Variable("name").resolve({"name": ""}) is None


@given(st.text().filter(lambda text: "{{" not in text))
def test_text_without_double_braces_is_itself(text: str) -> None:
    assert "".join(map(str, Template.parse(text).parts)) == text


@pytest.mark.parametrize("text", ["Hi {name}!", "{ имя | друзья }, добрый день", "x {{ a }} {first_name}"])
def test_a_word_in_single_braces_is_half_a_variable(text: str) -> None:
    assert half_written(text)


@pytest.mark.parametrize("text", ["{{ name }}", '{{ name | default: "x" }}{ }', "a { b c }", "{1}", "}{"])
def test_other_braces_are_text(text: str) -> None:
    assert half_written(text) is None
