"""Registrable domains: the public suffix list with its private rules, and our own list of site builders.

The snapshot comes with the package ``publicsuffixlist``; nothing is fetched. Without the private rules
``firma.com.ru`` and ``firma.msk.ru`` would be one company called ``com.ru`` or ``msk.ru``.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

BUILDERS_FILE = "site_builders.txt"


class PublicSuffixes:
    """Hosts are lower-case A-labels, and no IP addresses."""

    def __init__(self, list_of_suffixes: PublicSuffixList, builders: frozenset[str]) -> None:
        self._list = list_of_suffixes
        self._builders = builders
        # Pages name the same few domains again and again.
        self.registrable = lru_cache(maxsize=65_536)(self._registrable)
        self.is_listed = lru_cache(maxsize=65_536)(self._is_listed)

    def _registrable(self, host: str) -> str | None:
        """The suffix and one label more; None where the host is a suffix itself."""
        return self._list.privatesuffix(host)

    def suffix(self, host: str) -> str | None:
        return self._list.publicsuffix(host)

    def _is_listed(self, host: str) -> bool:
        """Whether its top-level domain exists: the list names them all."""
        return self._list.publicsuffix(host, accept_unknown=False) is not None

    def is_builder(self, host: str) -> bool:
        """Whether it is the suffix that a site builder gives to its customers, such as tilda.ws."""
        return host in self._builders


@cache
def public_suffixes() -> PublicSuffixes:
    builders = read_names(BUILDERS_FILE)
    rules = Path(PSLFILE).read_text(encoding="utf-8").splitlines()
    return PublicSuffixes(PublicSuffixList([*rules, *builders]), frozenset(builders))


def read_names(file: str) -> list[str]:
    """The lines of a data file beside this module, without comments."""
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]
