"""Regions by name: as people write them, or by Yandex's number."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.search.regions import yandex_regions
from sendonce.domain.prospecting.searches import Region
from sendonce.errors import BadInput

find = yandex_regions().find

WRITTEN = {
    "Казань": "43",
    " казань ": "43",
    "г. Казань": "43",
    "Москва": "213",
    "moscow": "213",
    "Московская область": "1",
    "СПб": "2",
    "Ростов на Дону": "39",
    "орел": "10",
    "Татарстан": "11119",
    "республика татарстан": "11119",
    "Свердловская обл.": "11162",
    "Пермь": "50",
    "Пермский край": "11108",
    "43": "43",
    "Россия": "225",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_names_are_found_as_people_write_them(text: str) -> None:
    assert find(text).code == WRITTEN[text]


def test_a_number_that_is_not_listed_is_taken_at_its_word() -> None:
    assert find("10716") == Region("10716", "10716")
    assert find("43") == find("Казань") == Region("43", "Казань")


def test_no_region_is_everywhere() -> None:
    assert find("") == Region()


@pytest.mark.parametrize(("text", "near"), [("Казнь", "Казань"), ("Екатиринбург", "Екатеринбург")])
def test_an_unknown_name_tells_the_nearest_and_that_a_number_works(text: str, near: str) -> None:
    with pytest.raises(BadInput, match=near) as caught:
        find(text)
    assert "--region 43" in str(caught.value)


@given(st.text())
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with suppress(BadInput):
        find(text)
    with pytest.raises(BadInput) as caught:
        find(f"нет такого {text}")
    assert len(str(caught.value)) < 400


def test_every_region_is_found_by_its_own_name_and_number() -> None:
    for region in yandex_regions()._regions.values():
        assert find(region.name) == region == find(region.code)
