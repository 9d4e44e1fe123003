"""The tutorial, walked from an empty folder: its commands run, and they print what it says."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.house import ask
from tests.crash.world import Process, free_port, until

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-five-minutes.md"
BLOCK = re.compile(r"^(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}")


class Walker:
    """Does what a reader of the page does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "PYTHONUTF8": "1",
            "PORT": str(self.port),
        }
        self.printed = ""

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        self.printed = done.stdout
        return done.stdout

    def compare(self, shown: str) -> None:
        """Every line of the block is there, in this order; … stands for any number of lines."""
        lines = iter(ID.sub("ID", self.printed).splitlines())
        for line in ID.sub("ID", shown).splitlines():
            assert line == "…" or line in lines, f"{line!r} is not in:\n{self.printed}"

    def serve_and_leave(self) -> None:
        """The service runs while the link of the first letter is opened."""
        letter = min((self.folder / "maildir" / "new").iterdir()).read_text()
        link = re.search(r"^List-Unsubscribe: <(.+)>$", letter, re.MULTILINE)
        assert link is not None
        log = self.folder / "serve.log"
        service = Process([sys.executable, "-m", "sendonce", "serve"], self.environment, log, self.folder)
        try:
            until(lambda: self._is_up(), 30, "the service answers")
            with urllib.request.urlopen(link[1], timeout=20) as page:
                assert page.status == 200
        finally:
            service.end()

    def _is_up(self) -> bool:
        try:
            return ask(f"http://127.0.0.1:{self.port}/readyz").status == 200
        except OSError:
            return False


@pytest.fixture
def walker(tmp_path: Path) -> Walker:
    return Walker(tmp_path)


def test_the_tutorial_from_an_empty_folder(walker: Walker) -> None:
    compared = 0
    for name, kind, content in BLOCK.findall(PAGE.read_text(encoding="utf-8").partition("## 2.")[2]):
        if name:
            (walker.folder / name).write_text(content, encoding="utf-8")
        elif kind == "sh" and content.startswith("ID="):
            found = ID.search(walker.printed)
            assert found is not None
            walker.environment["ID"] = found[0]
        elif content == "sendonce serve\n":
            walker.serve_and_leave()
        elif kind == "sh":
            walker.run(content)
        elif not kind:
            walker.compare(content)
            compared += 1
    assert compared >= 5
    assert "anna@example.org" in walker.printed
    again = walker.run("sendonce mailout create letter.md")
    found = ID.search(again)
    assert found is not None
    assert "│ = planned                   │ 2     │" in walker.run(f"sendonce mailout send {found[0]}")
