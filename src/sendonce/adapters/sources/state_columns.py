"""The columns of a file that say who may be written to: found by title, settled by a look at all values.

Nothing is imported before every state in the file was read, so the look is a pass of its own. Files without
such a column are spared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sendonce.adapters.sources.csv_records import Block
from sendonce.domain.people.told_states import (
    ColumnKind,
    StateRules,
    Told,
    folded,
    gravest,
    kinds_of,
    names_people_to_spare,
    names_places,
    settled_kind,
)
from sendonce.errors import BadInput, RefusedByRule

# A column that tells a state has few values; those of a column that may be one are kept up to here.
_MOST_VALUES = 1_000
_MOST_SHOWN = 8

_MAYBE = (ColumnKind.MAYBE_STATE, ColumnKind.MAYBE_OPTED_IN, ColumnKind.MAYBE_REGION)


@dataclass(slots=True)
class StateColumns:
    """The columns of one file that tell states, by their place."""

    titles: Sequence[str]
    kinds: dict[int, ColumnKind]
    rules: StateRules
    _values: dict[int, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, titles: Sequence[str], taken: Iterable[int], rules: StateRules) -> StateColumns:
        """The columns that may tell a state. ``taken`` are those known to hold something else."""
        other = {
            *taken,
            *(place for title in rules.ignored for place in _places(titles, title, "--ignore-column")),
        }
        kinds = kinds_of({n: title for n, title in enumerate(titles) if n not in other})
        for title in rules.columns:
            kinds |= dict.fromkeys(_places(titles, title, "--status-column"), ColumnKind.STATE)
        return cls(titles, kinds, rules)

    # -- the look before the import ---------------------------------------------------------------

    def look_at(self, block: Block, email: int) -> None:
        """Note the values of one more block, of lines that have an address."""
        for place, kind in self.kinds.items():
            if block.columns:
                addresses, values = block.columns[email], block.columns[place]
            else:
                addresses, values = ([_cell(cells, n) for cells in block.records] for n in (email, place))
            pairs = zip(addresses, values, strict=True)
            self._note(place, kind, {value for address, value in pairs if address and not address.isspace()})

    def _note(self, place: int, kind: ColumnKind, values: set[str]) -> None:
        """Of a column that tells a state for sure, only what cannot be read has to be kept."""
        kept = self._values.setdefault(place, set())
        telling = values if kind in _MAYBE else {v for v in values if self.rules.read(kind, v) is None}
        for value in telling - kept:
            if len(kept) < _MOST_VALUES:
                kept.add(value)

    def settle(self, path: str) -> None:
        """Decide which columns tell a state. Raises RefusedByRule where one does that cannot be read."""
        places = names_places(self.titles)
        unread: dict[int, list[str]] = {}
        for place, kind in list(self.kinds.items()):
            values = self._values.get(place, set())
            settled = settled_kind(kind, values, beside_places=places)
            if settled is None:
                del self.kinds[place]
                continue
            self.kinds[place] = settled
            found = sorted(value for value in values if self.rules.read(settled, value) is None)
            if found:
                unread[place] = found
        if unread:
            raise RefusedByRule(
                _question(path, {self.titles[n].strip(): values for n, values in unread.items()})
            )

    def require_sense(self, path: str, file_name: str) -> None:
        """Raises RefusedByRule where only the name of the file says that people left or never joined."""
        if not self.kinds and self.rules.everybody is None and names_people_to_spare(file_name):
            raise RefusedByRule(
                f"{path!r} is named like a list of people who left or never joined, but none of its columns "
                "says so. Nothing was imported. If they left, give --as unsubscribed (or --as bounced). If "
                "they never joined, leave the file out. If they may be written to, give --as active."
            )

    # -- the import -------------------------------------------------------------------------------

    def told(self, columns: Sequence[Sequence[str]]) -> list[Told] | None:
        """What the columns say of each person; None where all of them are active."""
        columns_told = [
            told for place, kind in self.kinds.items() if (told := self._told_in(kind, columns[place]))
        ]
        if self.rules.everybody not in (None, Told.ACTIVE):
            columns_told.append([self.rules.everybody] * len(columns[0]))
        if not columns_told:
            return None
        if len(columns_told) == 1:
            return columns_told[0]
        return [gravest(each) for each in zip(*columns_told, strict=True)]

    def _told_in(self, kind: ColumnKind, column: Sequence[str]) -> list[Told] | None:
        readings = {value: self._read(kind, value) for value in set(column)}
        if all(told == Told.ACTIVE for told in readings.values()):
            return None
        return [readings[value] for value in column]

    def told_of(self, cells: Sequence[str]) -> Told:
        readings = [self._read(kind, _cell(cells, place)) for place, kind in self.kinds.items()]
        return gravest([self.rules.everybody or Told.ACTIVE, *readings])

    def why_unconfirmed(self, cells: Sequence[str]) -> str:
        """Which column says that somebody never confirmed, and how to import them all the same."""
        for place, kind in self.kinds.items():
            value = _cell(cells, place)
            if self._read(kind, value) == Told.UNCONFIRMED:
                title, word = _plain(self.titles[place]), _plain(value)
                # A flag such as "no" stands in other columns, where --status would turn it round.
                of_a_word = f'--status "{word}=active"'
                answer = of_a_word if kind == ColumnKind.STATE else f'--ignore-column "{title}"'
                return f"column {title!r} says {word!r}: they never confirmed. To import them: {answer}"
        return "they never confirmed, as --as unconfirmed says"

    def _read(self, kind: ColumnKind, value: str) -> Told:
        # Lines without an address are not looked at before, and lead nowhere.
        return self.rules.read(kind, value) or Told.UNCONFIRMED


def _cell(cells: Sequence[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""


def _places(titles: Sequence[str], wanted: str, option: str) -> list[int]:
    """All columns of a title: exports repeat some."""
    exact = [n for n, title in enumerate(titles) if title.strip() == wanted.strip()]
    found = exact or [
        n for n, title in enumerate(titles) if folded(wanted) and folded(title) == folded(wanted)
    ]
    if not found:
        names = ", ".join(title.strip() for title in titles if title.strip())
        raise BadInput(f"There is no column {wanted!r}: the first line names {names}. Correct {option}.")
    return found


def _question(path: str, unread: Mapping[str, Sequence[str]]) -> str:
    lines = [f"{path!r} says of each person in a way that cannot be read whether they may be written to:"]
    for title, values in unread.items():
        shown = ", ".join(repr(value.strip()[:60]) for value in values[:_MOST_SHOWN])
        more = f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else ""
        lines.append(f"  column {title[:60]!r}: {shown}{more}")
    lines.append(
        "Nothing was imported. Say what each value means (active, unsubscribed, bounced, complained or"
    )
    lines.append("unconfirmed), or that the column is something else:")
    for title, values in unread.items():
        meanings = " ".join(f'--status "{_plain(value)}=unsubscribed"' for value in values[:_MOST_SHOWN])
        lines.append(f'  --status-column "{_plain(title)}" {meanings}')
        lines.append(f'  --ignore-column "{_plain(title)}"')
    return "\n".join(lines)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text.strip()[:60])
