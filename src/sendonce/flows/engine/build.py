"""Make parcels: a letter is compiled once, then only the recipient's fields are put in."""

from __future__ import annotations

from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.message import CompiledLetter, compile_letter
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.tenants import DispatchId
from sendonce.errors import BadInput, NotFound
from sendonce.ports.engine import Letters

# Letters in use at one time; an agency's worker may serve many dispatches.
MOST_LETTERS = 64

_Key = tuple[str | None, DispatchId]
"""A letter, and the dispatch that it is sent in: its Feedback-ID tells that."""


class ParcelBuilder:
    def __init__(self, letters: Letters, settings: MessageSettings) -> None:
        self._source = letters
        self._settings = settings
        self._letters: dict[_Key, CompiledLetter | BadInput | NotFound] = {}

    def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
        """Whether all their letters are compiled already."""
        letters = (self._letters.get((job.letter_id, job.dispatch_id)) for job in jobs)
        return all(letter is not None and not isinstance(letter, NotFound) for letter in letters)

    def load(self, jobs: tuple[ClaimedJob, ...]) -> None:
        """Compile the letters of newly claimed jobs, and forget those that were claimed longest ago."""
        wanted = {(job.letter_id, job.dispatch_id) for job in jobs}
        letters = self._letters.copy()  # the loop may be building from the present one
        for key in wanted:
            known = letters.pop(key, None)
            if known is None or isinstance(known, NotFound):  # a letter that is gone may be back
                known = self._compiled(*key)
            letters[key] = known
        # The jobs of two groups may be waiting, each with a letter of its own.
        for key in list(letters)[: -max(MOST_LETTERS, 3 * len(wanted))]:
            del letters[key]
        self._letters = letters

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

    def build(self, job: ClaimedJob, taken: float) -> Parcel:
        """Raises BadInput, naming the field, for what cannot stand in a letter, and NotFound without one."""
        letter = self._letters[job.letter_id, job.dispatch_id]
        if not isinstance(letter, CompiledLetter):
            raise letter
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
