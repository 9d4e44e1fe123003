"""The regions of Yandex by name, from a list that people can read and mend."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from sendonce.domain.prospecting.searches import Region
from sendonce.errors import BadInput

REGIONS_FILE = "yandex_regions.txt"
_CODE = re.compile(r"[1-9][0-9]{0,6}")
_NOT_A_LETTER = re.compile(r"[\W_]+")
# Said before or after a name, and not needed to tell it.
_KINDS = re.compile(r"\b(республика|область|обл|край|автономный округ|город|г)\b")


class YandexRegions:
    """ports.Regions"""

    def __init__(self, regions: dict[str, Region], names: dict[str, Region]) -> None:
        self._regions = regions
        self._names = names

    def find(self, text: str) -> Region:
        wanted = text.strip()
        if not wanted:
            return Region()
        if _CODE.fullmatch(wanted):
            return self._regions.get(wanted) or Region(wanted, wanted)
        found = self._names.get(_key(wanted)) or self._names.get(_short_key(wanted))
        if found is None:
            raise BadInput(
                f"There is no region {wanted[:60]!r} in our list{self._alike(wanted)}. Yandex's number of a "
                "region works too: --region 43 is Казань."
            )
        return found

    def _alike(self, wanted: str) -> str:
        keys = get_close_matches(_key(wanted), self._names, n=3, cutoff=0.6)
        names = dict.fromkeys(self._names[key].name for key in keys)
        return f"; nearest: {', '.join(names)}" if names else ""


@cache
def yandex_regions() -> YandexRegions:
    """Lines are ``number name; other names``. The first of two places of one name stands for it."""
    regions: dict[str, Region] = {}
    names: dict[str, Region] = {}
    text = (files(__package__) / REGIONS_FILE).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        code, _, spelled = line.partition(" ")
        name, *others = (part.strip() for part in spelled.split(";"))
        region = regions[code] = Region(code, name)
        for each in (name, *others):
            names.setdefault(_key(each), region)
    for region in regions.values():
        names.setdefault(_short_key(region.name), region)
    return YandexRegions(regions, names)


def _key(name: str) -> str:
    """``Ростов-на-Дону`` and ``ростов на дону`` are one."""
    return _NOT_A_LETTER.sub(" ", name.casefold().replace("ё", "е")).strip()


def _short_key(name: str) -> str:
    return " ".join(_KINDS.sub(" ", _key(name)).split())
