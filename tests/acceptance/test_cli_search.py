"""sendonce search …: what programs and people see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.nursery import run_program

ENVIRONMENT = {"PYTHONUTF8": "1", "COLUMNS": "300"}


def search(folder: Path, *arguments: str, code: int = 0) -> str:
    done = run_program(["search", *arguments], {**ENVIRONMENT, "HOME": str(folder)}, folder)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def listed(folder: Path) -> Any:
    return json.loads(search(folder, "list", "--json"))


def test_a_search_is_added_once(tmp_path: Path) -> None:
    said = search(tmp_path, "add", "производители насосов", "--region", "Казань", "--pages", "3")
    assert "1 search, 3 requests" in said
    again = search(tmp_path, "add", "Производители  насосов", "--region", "43")
    assert again == "1 search was known already.\n"
    (query,) = listed(tmp_path)
    assert {name: query[name] for name in ("text", "region", "region_code", "pages", "state", "results")} == {
        **{"text": "производители насосов", "region": "Казань", "region_code": "43"},
        **{"pages": 3, "state": "queued", "results": 0},
    }
    assert query["operations"] == {"queued": 3}
    assert "производители насосов" in search(tmp_path, "list")


def test_lines_of_a_file_or_of_stdin_are_searches(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes("\ufeffнасосы\r\n\r\nкабель\n".encode())
    added = json.loads(search(tmp_path, "add", "--file", "list.txt", "--pages", "1", "--json"))
    assert [(each["text"], each["new_pages"]) for each in added] == [("насосы", 1), ("кабель", 1)]
    subprocess.run(
        [sys.executable, "-m", "sendonce", "search", "add", "--pages", "1"],
        input="мебель\nнасосы\n".encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert {query["text"] for query in listed(tmp_path)} == {"насосы", "кабель", "мебель"}


def test_what_cannot_be_searched_for_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    assert "Казань" in search(tmp_path, "add", "насосы", "--region", "Казнь", code=2)
    assert "1 to 10" in search(tmp_path, "add", "насосы", "--pages", "11", code=2)
    assert "few words" in search(tmp_path, "add", " ", code=2)
    assert "too long" in search(tmp_path, "add", "насосы", "слово " * 41, code=2)
    assert "no-such.txt" in search(tmp_path, "add", "--file", "no-such.txt", code=2)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in search(tmp_path, "add", "--file", "bytes.txt", code=2)
    assert "direction 'pumps'" in search(tmp_path, "add", "насосы", "--direction", "pumps", code=1)
    assert "nobody" in search(tmp_path, "add", "насосы", "--tenant", "nobody", code=1)
    assert listed(tmp_path) == []


def test_only_what_has_ended_badly_is_retried(tmp_path: Path) -> None:
    search(tmp_path, "add", "насосы")
    (query,) = listed(tmp_path)
    assert "nothing to retry" in search(tmp_path, "retry", query["id"], code=3)
    assert "There is no search" in search(tmp_path, "retry", "00000000-0000", code=1)
