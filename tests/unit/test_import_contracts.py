"""Every adapter has its place in the contracts that import-linter checks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import sendonce.adapters

ADAPTERS = Path(sendonce.adapters.__file__).parent
ROOT = ADAPTERS.parents[2]


def test_every_adapter_is_either_apart_or_shared() -> None:
    """A new one that nobody lists would be free to know all the others."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (apart,) = (set(it["modules"]) for it in contracts if it["type"] == "independence")
    (shared,) = (
        set(it["source_modules"]) for it in contracts if set(it.get("forbidden_modules", ())) == apart
    )
    there = {
        f"sendonce.adapters.{path.stem}"
        for path in ADAPTERS.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert apart | shared == there - {"sendonce.adapters.__init__"}
    assert not apart & shared
