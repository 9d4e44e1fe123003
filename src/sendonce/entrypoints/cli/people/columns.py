"""Options that name the columns of a file."""

from __future__ import annotations

import re

from sendonce.errors import BadInput

# The comma before the next name=: any other belongs to a title, such as «Имя, фамилия».
_NEXT_PAIR = re.compile(",(?=[^,=]*=)")


def column_mapping(given: list[str]) -> dict[str, str]:
    """``--map email=E-mail,name=Имя``, given once or several times."""
    mapping: dict[str, str] = {}
    for pair in (pair for words in given for pair in _NEXT_PAIR.split(words)):
        target, equals, title = pair.partition("=")
        if not equals or not target.strip() or not title.strip():
            raise BadInput(f"--map has {pair!r}: it must be like email=E-mail,name=Имя.")
        mapping[target.strip().casefold()] = title.strip()
    return mapping
