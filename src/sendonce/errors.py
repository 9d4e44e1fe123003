"""Everything that can go wrong on purpose.

    SendonceError              says what happened, with the value, and what to do
    ├── BadInput               the caller's words are off             exit 2, HTTP 400
    │   └── BadSetting         an environment variable is off         exit 2
    ├── NotFound               no such mailout, job, …                exit 1, HTTP 404
    ├── RefusedByRule          a rule says no                         exit 3, HTTP 409
    │   ├── Unsendable         a mailout cannot be sent as it is      exit 3, HTTP 400
    │   ├── SenderRefused      the provider would refuse every letter exit 3, HTTP 409
    │   ├── Overtaken          somebody else changed it meanwhile     exit 3, HTTP 409
    │   ├── LedgerRolledBack   the database is older than what was sent from it
    │   └── SchemaMismatch     the database has another program's schema
    ├── NotGenuine             a message is not from whom it says     HTTP 403
    ├── WorkerBuried           the ledger has ended this worker       exit 1: start it again
    └── Unavailable            something outside did not answer       exit 1, HTTP 503
        ├── CertificateUnknown a certificate has to be fetched first
        └── StoreLost          the database went away in mid-sentence

Foreign exceptions are translated where they come in, always ``from exc``.
"""

from __future__ import annotations

from concurrent.futures import Future


class SendonceError(Exception):
    """Base of all our errors: ``str(error)`` is fit to be shown to a user."""

    exit_code = 1
    http_status = 500


class BadInput(SendonceError):
    exit_code = 2
    http_status = 400


class BadSetting(BadInput):
    """Names the variable, the value and the fix."""


class NotFound(SendonceError):
    exit_code = 1
    http_status = 404


class RefusedByRule(SendonceError):
    exit_code = 3
    http_status = 409


class Unsendable(RefusedByRule):
    """Its letter or its list has to be mended first; nothing of it was started."""

    http_status = 400


class SenderRefused(RefusedByRule):
    """The account, its identity or its configuration has to be mended first; nothing was started."""


class Overtaken(RefusedByRule):
    """What was looked at is not so any more; nothing was done."""


class LedgerRolledBack(RefusedByRule):
    """Letters were sent that this database does not know of: nothing may be claimed from it."""


class SchemaMismatch(RefusedByRule):
    pass


class NotGenuine(SendonceError):
    """It is not signed by whom it says, or nobody asked for it. The cause is for the log alone."""

    http_status = 403


class WorkerBuried(SendonceError):
    """Others took this worker for dead: it may claim nothing more. A new one may take its place."""


class Unavailable(SendonceError):
    exit_code = 1
    http_status = 503


class CertificateUnknown(Unavailable):
    """The certificate at ``url`` is not here yet. ``learning`` ends when it was looked for, within
    ``patience`` seconds."""

    def __init__(self, url: str, learning: Future[None], patience: float) -> None:
        super().__init__(f"The certificate at {url} has not been fetched yet.")
        self.learning = learning
        self.patience = patience


class StoreLost(Unavailable):
    """The connection broke and it is unknown whether the last transaction was committed."""
