"""Sites: which company an address on the web belongs to, and whether it is a company's at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class SiteKind(StrEnum):
    """``blocked`` is never visited: search engines, encyclopedias, addresses inside a network."""

    COMPANY = "company"
    MARKETPLACE = "marketplace"
    DIRECTORY = "directory"
    SOCIAL = "social"
    GOVERNMENT = "government"
    NEWS = "news"
    SITE_BUILDER = "site_builder"
    BLOCKED = "blocked"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Site:
    """``url`` is canonical. ``domain`` is the registrable domain in A-labels: the key of a company."""

    input: str
    url: str | None
    domain: str | None
    kind: SiteKind


# RFC 2606, RFC 6761, RFC 6762, RFC 7686 and ICANN's .internal: names that no public DNS answers for.
_RESERVED = "alt arpa corp example home internal intranet invalid lan local localdomain localhost onion test"
_RESERVED_TOP_LEVELS = frozenset(_RESERVED.split())
# The label that states reserve for themselves, at the top (.gov) or below a country (gov.ru, gob.mx).
_STATE_LABELS = frozenset(("gov", "gob", "gouv", "govt", "mil"))


def is_reserved(host: str) -> bool:
    return host.rpartition(".")[2] in _RESERVED_TOP_LEVELS


def is_of_a_state(suffix: str) -> bool:
    return suffix.partition(".")[0] in _STATE_LABELS


class KnownSites:
    """A table of domains and their kinds. A domain speaks for all hosts below it; the longest match wins."""

    def __init__(self, kinds: Mapping[str, SiteKind]) -> None:
        self._kinds = kinds

    def kind_of(self, host: str) -> SiteKind | None:
        return next((self._kinds[name] for name in _upwards(host) if name in self._kinds), None)


def _upwards(host: str) -> Iterable[str]:
    """``a.b.ru``, then ``b.ru``, then ``ru``: whole labels, so that myvk.com is not vk.com."""
    while host:
        yield host
        host = host.partition(".")[2]


# Parameters that tell where a visitor came from, and nothing about the page.
_TRACKING_NAMES = """
_ga _gl _openstat _ym_uid adjust_creative admitad_uid clid cm_id dclid ef_id erid etext fbclid from gad_source
gbraid gclid gclsrc igsh igshid mc_cid mc_eid mkt_tok msclkid oly_anon_id oly_enc_id rb_clickid ref referrer
referer roistat roistat_referrer s_cid srsltid stid tduid ttclid twclid vero_id vk_effect wbraid wickedid
yadclid yadordid yclid ymclid ysclid
"""
_TRACKING = frozenset(_TRACKING_NAMES.split())
_TRACKING_BEGINNINGS = ("utm_", "calltouch_", "hsa_", "pk_", "piwik_", "matomo_", "mtm_", "openstat_")


def without_tracking(query: str) -> str:
    """A query without the parameters that follow a visitor. The rest of it stays as it is written."""
    return "&".join(part for part in query.split("&") if part and not _tracks(part))


def _tracks(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in _TRACKING or name.startswith(_TRACKING_BEGINNINGS)


def shown_domain(domain: str) -> str:
    """As people read it: ``завод.рф``, not ``xn--80aegj1b.xn--p1ai``."""
    # Its tables are needed for few domains and cost every start of the program.
    import idna

    try:
        return idna.decode(domain)
    except idna.IDNAError:
        return domain
