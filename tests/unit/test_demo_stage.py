"""What a demonstration tells people to type works in their shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sendonce.entrypoints.cli.demo_stage import typed


def test_a_command_is_told_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "my venv" / "bin" / "sendonce"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o700)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed("companies", "list") == "sendonce companies list"
    monkeypatch.setenv("PATH", "/nowhere")
    assert typed("companies", "list") == f"'{program}' companies list"
    monkeypatch.chdir(tmp_path)
    assert typed("companies", "list") == "'my venv/bin/sendonce' companies list"
    program.unlink()
    assert typed("doctor") == f"'{program.with_name('python')}' -m sendonce doctor"
