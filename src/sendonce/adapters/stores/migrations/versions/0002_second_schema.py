"""The second schema: counted claims, held senders, kept events, and more about letters and people."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _workers_and_claims()
    _held_senders()
    _events()
    _letters_and_mailouts()
    _people()


def _workers_and_claims() -> None:
    pass


def _held_senders() -> None:
    pass


def _events() -> None:
    pass


def _letters_and_mailouts() -> None:
    pass


def _people() -> None:
    pass
