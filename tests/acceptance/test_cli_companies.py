"""sendonce companies domain: what programs and people see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.nursery import run_program

ENVIRONMENT = {"PYTHONUTF8": "1", "COLUMNS": "300"}


def test_each_address_gets_a_row_with_the_four_keys(tmp_path: Path) -> None:
    urls = ["http://www.firma.com.ru/?utm_source=ya#x", "https://vk.com/firma", "no site"]
    done = run_program(["companies", "domain", *urls, "--json"], ENVIRONMENT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"input": urls[0], "url": "https://www.firma.com.ru/", "domain": "firma.com.ru", "kind": "company"},
        {"input": urls[1], "url": "https://vk.com/firma", "domain": "vk.com", "kind": "social"},
        {"input": urls[2], "url": None, "domain": None, "kind": "invalid"},
    ]
    assert not list(tmp_path.iterdir())


def test_people_see_international_names_in_their_letters(tmp_path: Path) -> None:
    done = run_program(["companies", "domain", "https://www.завод.рф/"], ENVIRONMENT, tmp_path)
    assert " завод.рф " in done.stdout


def test_without_arguments_lines_of_stdin_are_read(tmp_path: Path) -> None:
    """Windows' line ends, a byte order mark, empty lines and bytes that are no text."""
    done = subprocess.run(
        [sys.executable, "-m", "sendonce", "companies", "domain", "--json"],
        input="\ufefffirma.ru\r\n\r\nзавод.рф\n".encode() + b"\xff\xfe.ru\n",
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert [row["domain"] for row in json.loads(done.stdout)] == ["firma.ru", "xn--80aegj1b.xn--p1ai", None]
