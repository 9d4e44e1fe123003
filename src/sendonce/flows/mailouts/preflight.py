"""What must be right before the first letter of a mailout leaves."""

from __future__ import annotations

from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.letter_faults import EMAIL_ADVICE, faults_of, lacking_words, needed_of
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.errors import BadInput
from sendonce.ports.mailouts import MailoutStore


def check_letter(letter: Letter, settings: MessageSettings, mailout_id: str) -> None:
    """Raises BadInput for a letter that cannot be built, or has a fault (domain/mailouts/letter_faults)."""
    compile_letter(letter, settings, mailout_id)
    for fault in faults_of(letter):
        raise BadInput(fault.words)


def count_audience(store: MailoutStore, tenant_id: TenantId) -> int:
    """Raises BadInput when there is nobody to write to."""
    active = store.subscribers.count(tenant_id).get(SubscriberStatus.ACTIVE, 0)
    if not active:
        raise BadInput("There is no active subscriber to write to: 'sendonce subscribers import' adds some.")
    return active


def check_variables(store: MailoutStore, tenant_id: TenantId, letter: Letter) -> None:
    """Raises BadInput for a variable that has no default and no value for some subscriber."""
    counts = {name: store.subscribers.count_lacking(tenant_id, name) for name in needed_of(letter)}
    lacking = lacking_words({name: people for name, people in counts.items() if people})
    if lacking:
        raise BadInput("\n".join(lacking))


def advise(letter: Letter) -> list[str]:
    """What will trouble a letter whoever it goes to."""
    return [EMAIL_ADVICE] if "email" in needed_of(letter) else []
