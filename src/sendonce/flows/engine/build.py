"""Make parcels: a letter is compiled once, then only the recipient's fields are put in.

A letter that comes to the wire outside its hours is not made, but waits: its worker was late, or a retry was
due at night.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.message import CompiledLetter, compile_letter
from sendonce.domain.engine.outcomes import Deferred
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.tenants import DispatchId
from sendonce.errors import BadInput, NotFound
from sendonce.flows.engine.keep_time import boot_time
from sendonce.ports.engine import Hours, Letters, Timetable

# Letters in use at one time; an agency's worker may serve many dispatches.
MOST_LETTERS = 64

OUT_OF_HOURS = "out_of_hours"
# A time that the engine put off further than any retry is taken for a mistake of a clock.
LONGEST_WAIT = timedelta(days=1)

_Key = tuple[str | None, DispatchId]
"""A letter, and the dispatch that it is sent in: its Feedback-ID tells that."""


class _Ready(NamedTuple):
    letter: CompiledLetter | BadInput | NotFound
    hours: Hours | None

    @property
    def is_gone(self) -> bool:
        """A letter that is gone may be back."""
        return isinstance(self.letter, NotFound)


class ParcelBuilder:
    """``timetable`` is None where all letters may leave at any time."""

    def __init__(
        self, letters: Letters, settings: MessageSettings, timetable: Timetable | None = None
    ) -> None:
        self._source = letters
        self._settings = settings
        self._timetable = timetable
        self._letters: dict[_Key, _Ready] = {}

    def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
        """Whether all their letters are compiled already."""
        letters = map(self._letters.get, _keys(jobs))
        return all(ready is not None and not ready.is_gone for ready in letters)

    def load(self, jobs: tuple[ClaimedJob, ...]) -> None:
        """Compile the letters of newly claimed jobs, and forget those that were claimed longest ago."""
        wanted = _keys(jobs)
        letters = self._letters.copy()  # the loop may be building from the present one
        for key in wanted:
            known = letters.pop(key, None)
            if known is None or known.is_gone:
                known = self._made_ready(*key)
            letters[key] = known
        # The jobs of two groups may be waiting, each with a letter of its own.
        for key in list(letters)[: -max(MOST_LETTERS, 3 * len(wanted))]:
            del letters[key]
        self._letters = letters

    def _made_ready(self, letter_id: str | None, dispatch_id: DispatchId) -> _Ready:
        hours = self._timetable.of(dispatch_id) if self._timetable else None
        return _Ready(self._compiled(letter_id, dispatch_id), hours)

    def _compiled(
        self, letter_id: str | None, dispatch_id: DispatchId
    ) -> CompiledLetter | BadInput | NotFound:
        letter = self._source.get(letter_id) if letter_id is not None else None
        if letter is None:
            return NotFound(f"The letter {letter_id or 'of the dispatch'} is gone.")
        try:
            return compile_letter(letter, self._settings, dispatch_id)
        except BadInput as exc:
            return exc

    def build(self, job: ClaimedJob, taken: float) -> Parcel | Deferred:
        """Raises BadInput, naming the field, for what cannot stand in a letter, and NotFound without one."""
        letter, hours = self._letters[job.letter_id, job.dispatch_id]
        if not isinstance(letter, CompiledLetter):
            raise letter
        if hours is not None and (wait := _wait_for(hours, job, taken)):
            return Deferred(OUT_OF_HOURS, "it waits for its hours", wait.total_seconds(), throttle=True)
        content = letter.build(job.id, job.recipient, job.fields, job.claimed_at, job.thread)
        return Parcel(
            job.id,
            job.attempt,
            self._settings.from_address,
            job.recipient,
            content,
            job.claimed_at,
            taken,
            job.tries,
            dotless=True,  # compile_letter and its values guard the start of every line
            dispatch_id=job.dispatch_id,
        )


def _wait_for(hours: Hours, job: ClaimedJob, taken: float) -> timedelta:
    """The store's clock was read some time after the claim began, so it is between these two moments now. The
    hours must hold at both."""
    earliest, latest = job.claimed_at, job.claimed_at + timedelta(seconds=boot_time() - taken)
    return min(max(hours.opens_in(job, earliest), hours.opens_in(job, latest)), LONGEST_WAIT)


def _keys(jobs: tuple[ClaimedJob, ...]) -> set[_Key]:
    """Of the few letters that many jobs share."""
    return {(job.letter_id, job.dispatch_id) for job in jobs}
