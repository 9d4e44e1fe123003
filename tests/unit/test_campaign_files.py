"""Campaign files: what they say, and the line of what is wrong."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.sources.campaign_toml import read_campaign
from sendonce.errors import BadInput

WHOLE = """name = "Pumps, autumn"
tenant = "acme"
direction = "pumps"

[window]
days = ["mon", "wed"]
from = "10:00"
to = "16:30"
timezone = "Europe/Moscow"
holidays = ["2026-12-31", 2027-01-01]

[[step]]
template = "first.md"

[[step]]
after = "3d"
subject = "Re: pumps"
text = "Did you see it?"

[brakes]
bounce = 0.03
"""


def test_a_whole_file() -> None:
    campaign = read_campaign(WHOLE)
    assert (campaign.name, campaign.tenant, campaign.direction) == ("Pumps, autumn", "acme", "pumps")
    assert campaign.window.days == {0, 2}
    assert (campaign.window.opens, campaign.window.closes) == (time(10), time(16, 30))
    assert campaign.window.holidays == {date(2026, 12, 31), date(2027, 1, 1)}
    assert [(step.template, step.subject, step.after) for step in campaign.steps] == [
        ("first.md", None, timedelta()),
        (None, "Re: pumps", timedelta(days=3)),
    ]
    assert (campaign.brakes.bounce, campaign.brakes.complaint) == (0.03, 0.001)


def test_times_may_be_those_of_toml() -> None:
    window = read_campaign(WHOLE.replace('"10:00"', "10:00:00")).window
    assert window.opens == time(10)


def test_the_shortest_file() -> None:
    campaign = read_campaign('name="n"\ntenant="t"\ndirection="d"\n[[step]]\nsubject="s"\ntext="t"\n')
    assert campaign.window.days == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('tenant = "acme"', 'tennant = "acme"', r"Line 2: there is no 'tennant' here. Did you mean tenant\?"),
        ('tenant = "acme"', "tenant = 5", "Line 2: tenant is a text in quotes, not 5"),
        ('direction = "pumps"\n', "", 'Line 1: direction is missing: write direction = "…"'),
        ('timezone = "Europe/Moscow"', 'timezone = "Europe/Kazan"', "Line 9: There is no time zone"),
        ('to = "16:30"', 'to = "09:00"', "Line 8: the window never opens"),
        ('days = ["mon", "wed"]', "days = []", "Line 6: days is a list"),
        ('template = "first.md"', "", "Line 12: a step needs template"),
        ('template = "first.md"', 'subject = "s"', "Line 12: a step needs template"),
        ('template = "first.md"', 'template = "a.md"\ntext = "t"', "Line 13: a step has a template, or"),
        ('after = "3d"\n', "", "Line 15: a follow-up says how long it waits"),
        ('after = "3d"', 'after = "soon"', 'Line 16: A delay is written "3d"'),
        ('after = "3d"', 'after = "0d"', "Line 16: A delay is more than nothing"),
        ("bounce = 0.03", "bounce = 3", "Line 21: The limit of the brake bounce is a share"),
        ("bounce = 0.03", 'bounce = "3%"', "Line 21: bounce is a number"),
        ("bounce = 0.03", "bounces = 0.03", "Line 21: there is no 'bounces' here. Did you mean bounce"),
        ("bounce = 0.03", "bounce_window = 5", "Line 21: there is no 'bounce_window' here"),
        ("bounce = 0.03", "bounce = nan", "Line 21: The limit of the brake bounce is a share"),
        ('from = "10:00"', 'from = "10:00+03:00"', "Line 7: A time of the day is written"),
        ('from = "10:00"', 'from = "24:00"', "Line 7: A time of the day is written"),
        ("2027-01-01]", "2027-01-01T00:00:00]", "Line 10: A holiday is written .* not '2027-01-01 00:00:00'"),
        ('"2026-12-31"', '"31.12.2026"', "Line 10: A holiday is written .* not '31.12.2026'"),
        ('tenant = "acme"', 'tenant = "../x"', "Line 2: '../x' cannot be the id of a tenant"),
        ('direction = "pumps"', 'direction = "a b"', "Line 3: 'a b' cannot be the id of a direction"),
        ('name = "Pumps, autumn"', r'name = "a\u0000b"', "Line 1: name is one line of at most 200"),
        ('name = "Pumps, autumn"', f'name = "{"x" * 201}"', "Line 1: name is one line of at most 200"),
        ('tenant = "acme"', "tenant = acme", "Line 2: this is not TOML"),
        ("[[step]]\ntemplate", "[step]\ntemplate", "not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, says: str) -> None:
    assert old in WHOLE
    with pytest.raises(BadInput, match=says):
        read_campaign(WHOLE.replace(old, new, 1))


def test_a_first_step_waits_for_nothing() -> None:
    with pytest.raises(BadInput, match="Line 14: the first step is after nothing"):
        read_campaign(WHOLE.replace('template = "first.md"', 'template = "a.md"\nafter = "1d"'))


@given(st.text(max_size=200) | st.text(alphabet='[]="\nstepnamewindow{}1.', max_size=80))
def test_any_text_is_a_campaign_or_is_refused(text: str) -> None:
    with suppress(BadInput):
        read_campaign(text)
