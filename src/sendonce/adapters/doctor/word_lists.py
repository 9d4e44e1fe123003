"""Names that the doctor knows: small lists of what turns up most, kept by hand."""

from __future__ import annotations

_DISPOSABLE = """
10minutemail.com 1secmail.com crazymailing.com discard.email dispostable.com dropmail.me emailondeck.com
fakeinbox.com getnada.com grr.la guerrillamail.com guerrillamail.net guerrillamail.org maildrop.cc
mailinator.com mailnesia.com minuteinbox.com mintemail.com moakt.com mohmal.com sharklasers.com spam4.me
spamgourmet.com temp-mail.org tempail.com tempmail.com tempr.email throwawaymail.com trashmail.com
trashmail.de yopmail.com
"""
_SHORTENERS = """
bit.do bit.ly buff.ly clck.ru cutt.ly goo.gl is.gd lnkd.in ow.ly qps.ru rb.gy rebrand.ly shorturl.at t.co t.ly
tiny.cc tinyurl.com u.to v.gd vk.cc
"""
_SELECTORS = "default dkim google k1 k2 mail mailru mx s1 s2 selector1 selector2 smtp"

DISPOSABLE = frozenset(_DISPOSABLE.split())

# Filters distrust them: they hide where a link leads, and spammers share the domain.
SHORTENERS = frozenset(_SHORTENERS.split())

# A DKIM key can be found only by its selector; these are the ones that providers use.
USUAL_SELECTORS = tuple(_SELECTORS.split())
