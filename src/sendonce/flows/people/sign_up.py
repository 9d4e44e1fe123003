"""Sign somebody up: a letter asks back, and its link makes them a subscriber (double opt-in).

The answer to the form is the same whatever the address is. A process that dies in the middle leaves at worst
a wish without a letter; the person may ask again after a few minutes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.confirmation_letters import LINK, confirmation_letter
from sendonce.domain.people.sign_ups import KIND, Confirmation, SignUp, SignUpWish
from sendonce.errors import BadInput
from sendonce.ports.people import PeopleStore

log = logging.getLogger(__name__)

LONGEST_NAME = 200
_MOST_LETTERS = 16


@dataclass(slots=True)
class SignUpDesk:
    """``link_to`` makes the link that confirms a sign-up; ``sender`` is whom readers know the letters by."""

    store: PeopleStore
    tenant_id: TenantId
    sender: str
    link_to: Callable[[str], str]
    _letters: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, wish: SignUpWish, language: str) -> bool:
        """Send a letter of confirmation; False where none goes out, which nobody outside may learn."""
        sign_up = self.store.sign_ups.ask(self.tenant_id, wish)
        if sign_up is None:
            return False
        self._write_to(sign_up, self._letter(language, wish.wording))
        log.info("a sign-up waits for its confirmation", extra={"fields": {"sign_up": sign_up.id}})
        return True

    def _write_to(self, sign_up: SignUp, letter_id: str) -> None:
        new = NewDispatch(KIND, sign_up.id, letter_id, asked_for=True)
        dispatch = self.store.dispatches.open(self.tenant_id, new)
        job = NewJob(parse_address(sign_up.email), {LINK: self.link_to(sign_up.id)})
        self.store.dispatches.plan(dispatch.id, [job])
        self.store.dispatches.run(dispatch.id)

    def _letter(self, language: str, wording: str) -> str:
        """The same words are kept once a process."""
        known = self._letters.get((language, wording))
        if known is None:
            if len(self._letters) >= _MOST_LETTERS:
                self._letters.clear()
            letter = confirmation_letter(language, self.sender, wording)
            known = self._letters[language, wording] = self.store.letters.put(self.tenant_id, letter)
        return known


def confirm_sign_up(store: PeopleStore, sign_up_id: str) -> Confirmation | None:
    """By the link of the letter; a repeat changes nothing. None: there is no such sign-up."""
    confirmation = store.sign_ups.confirm(sign_up_id)
    if confirmation is not None:
        log.info("a sign-up", extra={"fields": {"sign_up": sign_up_id, "outcome": confirmation}})
    return confirmation


def read_wish(email: object, name: object, source: str, wording: str) -> SignUpWish:
    """What a form sent. Raises BadInput for what is no address, or no name."""
    if not isinstance(email, str) or not email.strip():
        raise BadInput("email is missing: give one address, such as user@example.com.")
    if not isinstance(name, str | None):
        raise BadInput("name must be a text.")
    given = " ".join((name or "").split())
    if len(given) > LONGEST_NAME or not given.isprintable():
        raise BadInput(f"name must be one line of at most {LONGEST_NAME} characters.")
    return SignUpWish(parse_address(email.strip()), given or None, source, wording)
