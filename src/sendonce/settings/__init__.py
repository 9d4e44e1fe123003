"""The settings: every one declared once, in the table of its room.

This is the only package that reads the environment. The variable of a field is its name in capitals
(``rate_limit_per_sec`` is ``RATE_LIMIT_PER_SEC``). ``.env.example``, the reference page,
``sendonce settings`` and the error messages are all made from the declarations.

The process environment wins over ``.env``; a value that is empty means the default.
"""

from sendonce.settings.loading import load_settings, usual_security
from sendonce.settings.table import DECLARED, NOWHERE, Settings

__all__ = ["DECLARED", "NOWHERE", "Settings", "load_settings", "usual_security"]
