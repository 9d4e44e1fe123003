"""Who of the pipeline lives on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.adapters.roll_call import RollCall
from sendonce.errors import Unavailable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ledger" / "pipeline"


def buried(state: Path, worker: str) -> list[str]:
    dead: list[str] = []
    with RollCall(state, "ledger").present(worker, dead.append):
        return dead


def test_who_lives_or_has_left_is_not_buried(tmp_path: Path, folder: Path) -> None:
    with RollCall(tmp_path, "ledger").present("vm-1", [].append):
        assert buried(tmp_path, "vm-2") == []
        # A second process of the same name neither buries the first nor takes its sign of life away.
        assert buried(tmp_path, "vm-1") == []
        assert buried(tmp_path, "vm-2") == []
        assert [file.name for file in folder.iterdir()] == ["vm-1"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["vm-1", "работник 1/../x"])
def test_whoever_died_is_buried_once(tmp_path: Path, folder: Path, name: str) -> None:
    """Also by a process of the same name: in a container every process has the same number."""
    present = RollCall(tmp_path, "ledger").present(name, [].append)
    present.__enter__()
    (file,) = folder.iterdir()
    present.__exit__(None, None, None)
    file.touch()  # as it stands there without anybody who holds it
    assert buried(tmp_path, name) == [name]
    assert buried(tmp_path, "vm-2") == []


def test_another_database_has_other_processes(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "vm-1").touch()
    dead: list[str] = []
    with RollCall(tmp_path, "another").present("vm-2", dead.append):
        assert dead == []


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger").touch()
    with pytest.raises(Unavailable, match="Set STATE_DIR to a folder"):
        buried(tmp_path, "vm-1")
