"""Make parcels: letters are compiled once a mailout, then only the recipient's fields are put in."""

from __future__ import annotations

from collections.abc import Callable

from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import CompiledLetter, compile_letter
from sendonce.domain.engine.parcels import Parcel
from sendonce.errors import BadInput

# Letters in use at one time; an agency's worker may serve many mailouts.
MOST_LETTERS = 64


class ParcelBuilder:
    """``letter_of`` finds the letter of a mailout."""

    def __init__(self, letter_of: Callable[[str], Letter], settings: MessageSettings) -> None:
        self._letter_of = letter_of
        self._settings = settings
        self._letters: dict[str, CompiledLetter | BadInput] = {}

    def known(self, jobs: tuple[ClaimedJob, ...]) -> bool:
        """Whether all their letters are compiled already."""
        return {job.mailout_id for job in jobs} <= self._letters.keys()

    def load(self, jobs: tuple[ClaimedJob, ...]) -> None:
        """Compile the letters of newly claimed jobs, and forget those that were claimed longest ago."""
        wanted = {job.mailout_id for job in jobs}
        letters = self._letters.copy()  # the loop may be building from the present one
        for mailout_id in wanted:
            known = mailout_id in letters
            letters[mailout_id] = letters.pop(mailout_id) if known else self._compiled(mailout_id)
        # The jobs of two groups may be waiting, each of a mailout of its own.
        for mailout_id in list(letters)[: -max(MOST_LETTERS, 3 * len(wanted))]:
            del letters[mailout_id]
        self._letters = letters

    def _compiled(self, mailout_id: str) -> CompiledLetter | BadInput:
        try:
            return compile_letter(self._letter_of(mailout_id), self._settings, mailout_id)
        except BadInput as exc:
            return exc

    def build(self, job: ClaimedJob, taken: float) -> Parcel:
        """Raises BadInput, naming the field, for what cannot stand in a letter."""
        letter = self._letters[job.mailout_id]
        if isinstance(letter, BadInput):
            raise letter
        content = letter.build(job.id, job.recipient, job.fields, job.claimed_at)
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
            mailout_id=job.mailout_id,
        )
