"""The domain that letters come from, as a receiver's server sees it: SPF, DKIM and DMARC."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

from sendonce.adapters.doctor.word_lists import USUAL_SELECTORS
from sendonce.adapters.web.dns_records import Records
from sendonce.domain.engine.checks import Check, count_of, listed, ok, stop, warning
from sendonce.domain.people.mailboxes import FREE_MAIL
from sendonce.errors import Unavailable

_SPF_ALL = re.compile(r"(?:^|\s)([+?~-]?)all(?:\s|$)", re.IGNORECASE)
_DMARC_POLICY = re.compile(r";\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)", re.IGNORECASE)

DkimNames = Callable[[], Awaitable[Sequence[str]]]


async def unknown_names() -> Sequence[str]:
    return ()


class SenderDomainProbe:
    """``dkim_names`` tells where the keys are; the usual places are looked at where it tells none.

    ``by_own_name``: the envelope sender is of this domain too, so its SPF decides (SMTP; not SES).
    ``to_strangers``: who writes to people that never asked for it has to show who they are. What is missing
    is a stop then: SPF over SMTP, DMARC, a DKIM key that SES names. Other keys cannot be listed, so one that
    was not found may be there all the same.
    """

    name = "dns"

    def __init__(
        self,
        records: Records,
        sender: str,
        dkim_names: DkimNames = unknown_names,
        *,
        by_own_name: bool,
        to_strangers: bool = False,
    ) -> None:
        self._records = records
        self._domain = sender.rpartition("@")[2].lower()
        self._dkim_names = dkim_names
        self._by_own_name = by_own_name
        self._missing = stop if to_strangers else warning

    async def examine(self) -> Sequence[Check]:
        try:
            return await self.look()
        except Unavailable as exc:
            fix = "Check this machine's name servers (DNS_SERVER names another), and run doctor again."
            what = f"DNS does not answer here, so the records of {self._domain} are not known: {exc}"
            return [warning(self.name, what, fix)]

    async def look(self) -> Sequence[Check]:
        """Raises Unavailable where name servers do not answer: then nothing is known."""
        domain = await self._there()
        if domain is not None:
            return [domain]
        return await asyncio.gather(self._mail(), self._spf(), self._dkim(), self._dmarc())

    async def _there(self) -> Check | None:
        if self._domain in FREE_MAIL and not self._by_own_name:
            return stop(
                "dns.domain",
                f"Letters come from {self._domain} by SES: its owner tells receivers to refuse them.",
                "Send from a domain of your own.",
            )
        if await self._records.exists(self._domain):
            return None
        if not await self._records.works():
            raise Unavailable("The name servers say of every name that there is none.")
        return stop(
            "dns.domain",
            f"The domain {self._domain} does not exist: receivers refuse letters from it.",
            "Correct the sender's address, or register the domain.",
        )

    async def _mail(self) -> Check:
        """RFC 7505 §4.2: a domain with a null MX takes no mail, and should send none."""
        name = "dns.domain"
        servers = await self._records.mail_servers(self._domain)
        fix = "Publish an MX record of a server that takes answers and bounces."
        if servers in ([""], ["."]):
            return stop(
                name, f"{self._domain} has a null MX: it says that it has nothing to do with mail.", fix
            )
        if servers:
            return ok(name, f"Answers to {self._domain} go to {listed(sorted(servers), 2)}.")
        if await self._records.addresses(self._domain):
            return warning(name, f"{self._domain} has no MX record: answers may not arrive.", fix)
        what = f"{self._domain} has neither MX nor address records: receivers refuse letters from it."
        return stop(name, what, fix)

    async def _spf(self) -> Check:
        name = "dns.spf"
        found = [text for text in await self._records.texts(self._domain) if _is_spf(text)]
        if not found:
            fix = "Publish one TXT record, v=spf1 with your provider's include and ~all at its end."
            missing = self._missing if self._by_own_name else warning
            return missing(name, f"{self._domain} has no SPF record.", fix)
        if len(found) > 1:  # RFC 7208 §4.5: permerror
            what = f"{self._domain} has {len(found)} SPF records, which counts as none and fails."
            return stop(name, what, "Make one record of them.")
        return self._judge_spf(found[0])

    def _judge_spf(self, record: str) -> Check:
        name = "dns.spf"
        shown = record[:120]
        if record.lower().split() == ["v=spf1", "-all"]:
            what = f"The SPF record of {self._domain} is «{shown}»: it says that no server may send for it."
            fix = "Add your provider's include before -all."
            return stop(name, what, fix) if self._by_own_name else warning(name, what, fix)
        everybody = _SPF_ALL.search(record)
        if everybody and everybody[1] in ("", "+"):
            what = f"The SPF record of {self._domain} ends in +all: it lets everybody send for you."
            return warning(name, what, "End it in ~all or -all.")
        return ok(name, f"SPF: «{shown}».")

    async def _dkim(self) -> Check:
        name = "dns.dkim"
        told = await self._dkim_names()
        names = told or [f"{it}._domainkey.{self._domain}" for it in USUAL_SELECTORS]
        found = await asyncio.gather(*(self._has_key(dkim) for dkim in names))
        there = [dkim for dkim, is_there in zip(names, found, strict=True) if is_there]
        if there:
            return ok(name, f"DKIM: {count_of(len(there), 'key')} ({listed(there, 3)}).")
        what = f"No DKIM key of {self._domain} was found at {listed(names, 3)}."
        fix = (
            "Switch DKIM on with your provider, publish its record, and look for dkim=pass in a test letter."
        )
        missing = self._missing if told else warning
        return missing(name, what, fix)

    async def _has_key(self, name: str) -> bool:
        texts = await self._records.texts(name)
        # RFC 6376 §3.6.1: an empty p= is a revoked key.
        return any(re.search(r"(?:^|;)\s*p=\s*[A-Za-z0-9+/]", text) for text in texts)

    async def _dmarc(self) -> Check:
        name = "dns.dmarc"
        for domain in _with_parents(self._domain):
            found = [text for text in await self._records.texts(f"_dmarc.{domain}") if _is_dmarc(text)]
            if found:
                return self._judge_dmarc(domain, found)
        what = f"{self._domain} has no DMARC record: Gmail and Yahoo ask for one of those who send to many."
        fix = f'Publish TXT _dmarc.{self._domain} "v=DMARC1; p=none; rua=mailto:you@{self._domain}".'
        return self._missing(name, what, fix)

    def _judge_dmarc(self, domain: str, found: list[str]) -> Check:
        name = "dns.dmarc"
        if len(found) > 1:  # RFC 7489 §6.6.3: then none of them counts
            what = f"_dmarc.{domain} has {len(found)} DMARC records: none counts."
            return self._missing(name, what, "Leave one.")
        policy = _DMARC_POLICY.search(found[0])
        if policy is None:
            what = f"The DMARC record of {domain} has no policy: «{found[0][:120]}»."
            return self._missing(name, what, "Begin it with v=DMARC1; p=none;")
        return ok(name, f"DMARC of {domain}: p={policy[1].lower()}.")


def _with_parents(domain: str) -> list[str]:
    labels = domain.split(".")
    return [".".join(labels[start:]) for start in range(max(len(labels) - 1, 1))]


def _is_spf(text: str) -> bool:
    return text.lower() == "v=spf1" or text.lower().startswith("v=spf1 ")


def _is_dmarc(text: str) -> bool:
    return re.match(r"v\s*=\s*DMARC1\s*(;|$)", text) is not None
