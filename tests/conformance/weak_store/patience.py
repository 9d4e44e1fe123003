"""The weak store as somebody sees it who lets a moment pass before each question."""

from __future__ import annotations

from functools import wraps
from typing import Any

from tests.conformance.weak_store.items import Items


class Patient:
    """A part of the store whose listings have caught up with every verb that was called before.

    So the suite tells of this store what the port promises of all: what is true in the end. That nothing goes
    wrong meanwhile is told by the tests that do not wait.
    """

    def __init__(self, part: Any, items: Items) -> None:
        self._part = part
        self._items = items

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._part, name)

        @wraps(verb)
        def asked(*args: Any, **kwargs: Any) -> Any:
            self._items.catch_up()
            return verb(*args, **kwargs)

        return asked
