"""Names that the doctor knows: small lists of what turns up most, kept by hand."""

from __future__ import annotations

_ROLES = """
abuse accounting accounts admin administrator billing buh buhgalteria careers contact contacts customerservice
enquiries feedback finance help helpdesk hostmaster hr info it jobs legal mail mailer-daemon marketing media
news no-reply noc noreply office order orders postmaster pr press privacy root sales secretary security
service spam staff support sysadmin team tech usenet webmaster www zakaz
"""
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
_FREE_MAIL = """
aol.com bk.ru gmail.com gmx.de gmx.net googlemail.com hotmail.com icloud.com inbox.ru internet.ru list.ru
live.com mail.ru me.com outlook.com proton.me protonmail.com rambler.ru web.de ya.ru yahoo.com
yandex.com yandex.ru
"""
_SELECTORS = "default dkim google k1 k2 mail mailru mx s1 s2 selector1 selector2 smtp"

# Mailboxes of an office and not of a person: read by many, who did not all subscribe.
ROLES = frozenset(_ROLES.split())

DISPOSABLE = frozenset(_DISPOSABLE.split())

# Filters distrust them: they hide where a link leads, and spammers share the domain.
SHORTENERS = frozenset(_SHORTENERS.split())

# Their DMARC policies tell receivers to refuse letters that leave by anybody else's servers.
FREE_MAIL = frozenset(_FREE_MAIL.split())

# A DKIM key can be found only by its selector; these are the ones that providers use.
USUAL_SELECTORS = tuple(_SELECTORS.split())
