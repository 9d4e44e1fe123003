"""Answers of a model, kept in files: the same request is paid for once and always gets the same letter."""

from __future__ import annotations

import json
import os
from pathlib import Path


class KeptAnswers:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, key: str) -> str | None:
        try:
            return str(json.loads(self._file(key).read_text("utf-8"))["content"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # none yet, or not whole: asking again costs a little, and breaks nothing

    def put(self, key: str, content: str) -> None:
        """Whole or not at all. A disk that is full costs the keeping, not the letter."""
        file = self._file(key)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps({"content": content}, ensure_ascii=False), "utf-8")
            fresh.replace(file)
        except OSError:
            return

    def _file(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"
