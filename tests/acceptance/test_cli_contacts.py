"""sendonce contacts extract: what programs and people see of a saved page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.nursery import run_program

ENVIRONMENT = {"PYTHONUTF8": "1", "COLUMNS": "300"}
PAGE = """<html><head><meta charset="windows-1251"></head><body>
<a href="mailto:info%40firma.ru">Написать</a> <p>Отдел продаж: ivan.petrov (собака) mail.ru</p>
<p>Тел. 8 (843) 233-44-55 доб. 12</p><p>ИНН 7707083893 ОГРН 1027700132195</p>
<footer>Разработка сайта: hello@webstudio.ru</footer></body></html>"""


def test_the_page_yields_its_contacts_as_json(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(PAGE.encode("cp1251"))
    arguments = ["contacts", "extract", "page.html", "--url", "https://firma.ru/kontakty", "--json"]
    done = run_program(arguments, ENVIRONMENT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "emails": [
            {
                **{"value": "info@firma.ru", "quality": 1.0, "source": "mailto", "role": "role"},
                **{"freemail": False, "primary": True},
            },
            {
                **{
                    "value": "ivan.petrov@mail.ru",
                    "quality": 0.75,
                    "source": "obfuscated",
                    "role": "personal",
                },
                **{"freemail": True, "primary": False},
            },
        ],
        "phones": [
            {
                **{"value": "+78432334455", "quality": 0.6, "source": "text", "extension": "12"},
                **{"primary": True},
            }
        ],
        "inn": ["7707083893"],
        "ogrn": ["1027700132195"],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_people_see_tables(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(PAGE.encode("cp1251"))
    done = run_program(["contacts", "extract", "page.html", "--url", "firma.ru"], ENVIRONMENT, tmp_path)
    assert "info@firma.ru" in done.stdout
    assert "+78432334455" in done.stdout
    assert "ИНН: 7707083893" in done.stdout


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run_program(["contacts", "extract", "no.html", "--url", "firma.ru"], ENVIRONMENT, tmp_path)
    assert done.returncode == 2
    assert "no.html cannot be read: No such file or directory." in done.stderr


@pytest.mark.parametrize("url", ["firma", "ftp://firma.ru/", "https://firma .ru", "https://firma.nosuchtop/"])
def test_a_url_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    """It tells which addresses are the company's own, so a wrong one would change what is found."""
    (tmp_path / "page.html").write_text(PAGE)
    done = run_program(["contacts", "extract", "page.html", "--url", url], ENVIRONMENT, tmp_path)
    assert done.returncode == 2
    assert f"--url '{url}' is no address on the web." in done.stderr
