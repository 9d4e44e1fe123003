"""Verify the audit log: is it what was written, in the order in which it was written?"""

from __future__ import annotations

from sendonce.domain.people.audit import ChainReport, check_chain
from sendonce.ports.people import AuditLog


def verify_audit(audit_log: AuditLog, noted_head: str | None = None) -> ChainReport:
    """``noted_head`` is a hash that somebody noted earlier: the chain has to lead through it."""
    return check_chain(audit_log.entries(), noted_head)
