"""The demonstration of campaigns judges itself by the provider's log: here it does so many times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nursery import run_program


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_whenever_a_worker_is_killed_all_is_as_promised(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, seed: int
) -> None:
    """The seed says when. On PostgreSQL three workers share the work."""
    arguments = ["demo-campaign", "--dir", "demo", "--seed", str(seed)]
    if database == "postgres":
        arguments += ["--workers", "3", "--database-url", request.getfixturevalue("empty_postgres_url")]
    done = run_program(arguments, {"PYTHONUTF8": "1", "COLUMNS": "200"}, tmp_path, seconds=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "As promised: nothing twice" in done.stdout
