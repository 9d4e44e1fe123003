"""Secrets of a rehearsal: random, and the same for as long as the directory is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex


def kept_secrets(directory: Path, names: Sequence[str]) -> dict[str, str]:
    """Links of letters from earlier runs go on working. Only the owner may read the file."""
    path = directory / "secrets.json"
    kept = _read(path)
    secrets = {name: kept.get(name) or token_hex(32) for name in names}
    if secrets != kept:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(secrets, file)
    return secrets


def _read(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
