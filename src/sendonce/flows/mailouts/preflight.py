"""What must be right before the first letter of a mailout leaves."""

from __future__ import annotations

from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.templates import Template
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.rendering import GMAIL_CUTS_AT
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.errors import BadInput
from sendonce.ports.mailouts import MailoutStore

# The footer and the preheader come on top of the letter's own HTML.
FOOTER_SIZE = 1_000
# RFC 5322 §2.1.1 has lines of 998 characters, and some servers unfold a header before they count.
LONGEST_SUBJECT = 900

EMAIL_ADVICE = (
    "{{ email }} is not filled in: a letter may be forwarded, so the reader's address is not put into it. "
    "If you need it, import it a second time as a column of another name, and write that name."
)


def check_letter(letter: Letter, settings: MessageSettings, mailout_id: str) -> None:
    """Raises BadInput for a letter that cannot be built, is empty, or that Gmail would clip."""
    compile_letter(letter, settings, mailout_id)
    if not letter.text.strip() and "<img" not in letter.html:
        raise BadInput("The letter has neither a word nor an image: write something below its subject.")
    if len(letter.subject) > LONGEST_SUBJECT:
        raise BadInput(
            f"The subject has {len(letter.subject)} characters, and readers see the first 70 or so: make it "
            f"shorter than {LONGEST_SUBJECT}."
        )
    size = len(letter.html.encode("utf-8", "replace"))
    if size + FOOTER_SIZE > GMAIL_CUTS_AT:
        raise BadInput(
            f"The letter's HTML has {size // 1000} KB, and Gmail hides what comes after 102 KB, the way out "
            "included: shorten it."
        )


def count_audience(store: MailoutStore, tenant_id: TenantId) -> int:
    """Raises BadInput when there is nobody to write to."""
    active = store.subscribers.count(tenant_id).get(SubscriberStatus.ACTIVE, 0)
    if not active:
        raise BadInput("There is no active subscriber to write to: 'sendonce subscribers import' adds some.")
    return active


def check_variables(store: MailoutStore, tenant_id: TenantId, letter: Letter) -> None:
    """Raises BadInput for a variable that has no default and no value for some subscriber."""
    lacking = []
    for name in sorted(_without_default(letter)):
        people = store.subscribers.count_lacking(tenant_id, name)
        if people:
            lacking.append(EMAIL_ADVICE if name == "email" else _advice(name, people))
    if lacking:
        raise BadInput("\n".join(lacking))


def _advice(name: str, people: int) -> str:
    return (
        f"{{{{ {name} }}}} has no value for {people} active subscribers: give it a default, "
        f'as in {{{{ {name} | default: "…" }}}}.'
    )


def advise(letter: Letter) -> list[str]:
    """What will trouble a letter whoever it goes to."""
    return [EMAIL_ADVICE] if "email" in _without_default(letter) else []


def _without_default(letter: Letter) -> set[str]:
    sources = (letter.subject, letter.preheader, letter.html, letter.text)
    parts = [part for source in sources for part in Template.parse(source).parts]
    return {part.name for part in parts if not isinstance(part, str) and part.default is None}
