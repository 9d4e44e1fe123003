"""Look at the senders that were added: which of them cannot send, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import Check, count_of, ok, warning
from sendonce.domain.engine.sender_identities import SenderIdentity, SenderState
from sendonce.domain.engine.senders import NOT_SET_UP, words_of_away, words_of_hold
from sendonce.flows.engine.show_senders import KeysOf, SenderView, show_senders
from sendonce.ports.engine import EngineStore

NAME = "senders"


def check_senders(
    store: EngineStore,
    keys_of: KeysOf,
    own_address: str,
    trouble_of: Callable[[SenderIdentity], str | None],
) -> Sequence[Check]:
    """One check for each that cannot send; nothing at all where no sender was added.

    ``trouble_of`` tells what is wrong with a sender's settings on this machine.
    """
    added = [view for view in show_senders(store, keys_of) if view.identity is not None]
    found = [check for view in added for check in _judge(view, own_address, trouble_of)]
    if added and not found:
        return [ok(NAME, f"{count_of(len(added), 'added sender')} can send.")]
    return found


def _judge(
    view: SenderView, own_address: str, trouble_of: Callable[[SenderIdentity], str | None]
) -> list[Check]:
    assert view.identity is not None
    address = view.identity.address
    if view.state is SenderState.REMOVED:
        what = f"Letters wait for the sender {address}, which was removed."
        fix = f"Add it again: sendonce sender add {address} …, or end what waits for it."
        return [warning(NAME, what, fix)]
    found = []
    trouble = trouble_of(view.identity)
    if trouble is not None:
        fix = "Do so wherever workers run: one that does not find it holds the sender."
        found.append(warning(NAME, f"The sender {address} cannot send from here: {trouble}", fix))
    if view.hold is not None and not (trouble and view.hold.code == NOT_SET_UP):
        what = f"The sender {address} is held: {words_of_hold(view.hold)}"
        found.append(warning(NAME, what, f"Mend the cause, then: sendonce sender release {view.key}"))
    if view.away is not None:
        what = f"{address}: {words_of_away(view.keys, view.away)}"
        found.append(warning(NAME, what, f"Its own region is well? sendonce sender fail-back {address}"))
    if own_address and parse_address(address).key == parse_address(own_address).key:
        what = f"The sender {address} was added, and the environment sends from it too."
        found.append(warning(NAME, what, f"Keep one of them: sendonce sender remove {view.identity.id}"))
    return found
