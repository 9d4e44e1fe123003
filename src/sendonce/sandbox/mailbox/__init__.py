"""A small mail provider: takes letters over SMTP, files them as sent, and answers into the same mailbox."""

from sendonce.sandbox.mailbox.service import Mailbox

__all__ = ["Mailbox"]
