"""Reading the contacts of a page, against BeautifulSoup with the usual patterns. CPU time on one core."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from bs4 import BeautifulSoup

from bench.findings import Finding, ratio_finding
from bench.pages import CompanyPage, pages
from bench.processes import BenchFailed
from bench.stage import Stage
from sendonce.wiring.prospecting import contact_reader

ROWS = ("contacts",)
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"(?:\+7|8)[\s(-]*\d{3}[\s)-]*\d{3}[\s-]*\d{2}[\s-]*\d{2}")


def measure(stage: Stage, wanted: Sequence[str]) -> list[Finding]:  # noqa: ARG001 (one row only)
    made = pages(stage.size(80, 16))
    reader = contact_reader()

    def ours(page: CompanyPage) -> set[str]:
        return {email.value for email in reader.read(page.data, page.url).emails}

    ours(made[0])  # loads the tables of phone numbers and of top-level domains
    mine: list[float] = []
    yours: list[float] = []
    for _ in range(stage.size(7, 3)):
        rate, found = _rate(ours, made)
        mine.append(rate)
        rate, found_by_soup = _rate(_soup, made)
        yours.append(rate)
    truth = sum(len(page.emails) for page in made)
    stage.say(
        f"  {mine[-1]:,.0f} against {yours[-1]:,.0f} pages/s; {found} and {found_by_soup} of {truth} e-mails"
    )
    if found != truth:
        raise BenchFailed(f"{truth} e-mails are on the pages, {found} were found")
    figures = {"e-mails on the pages": truth, "found by us": found, "found by BeautifulSoup": found_by_soup}
    what = "contacts of a page of 20 to 200 KB"
    return [
        ratio_finding("contacts", what, "BeautifulSoup, html.parser", mine, yours, bar=15.0, figures=figures)
    ]


def _rate(read: Callable[[CompanyPage], set[str]], made: Sequence[CompanyPage]) -> tuple[float, int]:
    """Pages per second of CPU, and how many true addresses were found."""
    began = time.process_time()
    found = [read(page) for page in made]
    spent = time.process_time() - began
    return len(made) / spent, sum(len(some & page.emails) for some, page in zip(found, made, strict=True))


def _soup(page: CompanyPage) -> set[str]:
    """What tutorials do: links, then patterns over the text. Its phones cost time as ours do."""
    soup = BeautifulSoup(page.data, "html.parser")
    links = [link["href"] for link in soup.find_all("a", href=True)]
    for hidden in soup(["script", "style"]):
        hidden.decompose()
    text = soup.get_text(" ")
    _PHONE.findall(text)
    return {str(link)[7:] for link in links if str(link).startswith("mailto:")} | set(_EMAIL.findall(text))
