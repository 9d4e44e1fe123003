"""The sandbox's companies, from sites to kept contacts: what is found is measured against what is true."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.adapters.web.site_reader import site_reader
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import CompanyStatus, FoundSite
from sendonce.domain.prospecting.kept_contacts import ContactKind, SeenContact
from sendonce.sandbox.companies import CompanyWeb
from tests.adapters.sandbox_stage import Sandbox
from tests.conformance.prospecting_stage import NOW, Prospects
from tests.nursery import run_program

COUNT, SEED = 120, 11


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from World.opened(tmp_path_factory.mktemp("web"))


class World:
    """A sandbox, a database with the companies that a search would find, and one run over them."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.web = CompanyWeb(COUNT, SEED)
        self.truth = json.loads((sandbox.directory / "companies.json").read_text(encoding="utf-8"))
        self.environment = {
            **sandbox.addresses["environment"],
            "DATABASE_URL": f"sqlite:///{folder}/prospects.db",
            "CRAWL_PAUSE_SECONDS": "0",
            "PYTHONUTF8": "1",
        }
        self.store = self._with_companies()
        self.done = self.json("contacts", "enrich")

    @classmethod
    def opened(cls, folder: Path) -> Iterator[World]:
        sandbox = Sandbox(folder / "sandbox", {"companies": COUNT, "seed": SEED})
        try:
            world = cls(folder, sandbox)
            yield world
            world.store.close()
        finally:
            sandbox.stop()

    def _with_companies(self) -> SqlStore:
        store = open_store(self.environment["DATABASE_URL"])
        prospects = Prospects(store)
        sites = []
        for url, title, _ in self.web.results():
            site = site_reader().read(url)
            if site.kind == "company" and site.domain and site.url:
                sites.append(FoundSite(site.url, site.domain, title))
        store.companies.found(DEFAULT_TENANT, prospects.query, sites, NOW)
        return store

    def json(self, *arguments: str) -> Any:
        done = run_program([*arguments, "--json"], self.environment, self.folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def status(self, manner: str) -> set[CompanyStatus]:
        domains = [domain for domain, told in self.truth.items() if told["manner"] == manner]
        found = (self.store.companies.at(DEFAULT_TENANT, domain) for domain in domains)
        return {company.status for company in found if company}


def test_recall_and_precision(world: World) -> None:
    audits = world.json("contacts", "audit", str(world.folder / "sandbox" / "companies.json"))

    assert audits["emails"]["true"] > 180
    assert audits["emails"]["recall"] >= 0.95, audits["emails"]["missed"]
    assert audits["emails"]["precision"] >= 0.98, audits["emails"]["wrong"]
    assert audits["phones"]["recall"] >= 0.95, audits["phones"]["missed"]
    assert audits["phones"]["precision"] >= 0.98, audits["phones"]["wrong"]


def test_facts_and_tax_numbers_are_those_of_the_company(world: World) -> None:
    for domain, told in world.truth.items():
        company = world.store.companies.at(DEFAULT_TENANT, domain)
        if told["readable"] and company is not None:
            assert (company.inn, company.ogrn, company.city) == (told["inn"], told["ogrn"], told["city"])
            assert all("\n" not in fact.value and "\r" not in fact.value for fact in company.facts)


@pytest.mark.parametrize("manner", ["forbidden", "inward", "headers", "circle", "social"])
def test_sites_that_cannot_be_read_are_unreachable(world: World, manner: str) -> None:
    assert world.status(manner) == {CompanyStatus.UNREACHABLE}


def test_sites_in_trouble_are_tried_again_later(world: World) -> None:
    assert world.status("trouble") == {CompanyStatus.NEW}


@pytest.mark.parametrize("manner", ["bomb", "endless", "scripted"])
def test_sites_without_contacts_say_so(world: World, manner: str) -> None:
    assert world.status(manner) == {CompanyStatus.NO_CONTACTS}


def test_a_moved_site_leads_to_its_new_domain(world: World) -> None:
    moved = [domain for domain, told in world.truth.items() if told["manner"] == "moved"]
    assert moved
    for domain in moved:
        old, new = (world.store.companies.at(DEFAULT_TENANT, name) for name in (f"old-{domain}", domain))
        assert old is not None
        assert old == new


def test_a_second_run_visits_nobody(world: World) -> None:
    assert world.done["visited"] > 90
    assert world.json("contacts", "enrich")["visited"] == 0


def test_the_list_and_the_export_show_the_same(world: World) -> None:
    listed = world.json("contacts", "list", "--limit", "10000", "--kind", "email")
    done = run_program(
        ["contacts", "export", "-o", "out.csv", "--kind", "email"], world.environment, world.folder
    )
    assert done.returncode == 0, done.stderr
    with (world.folder / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == [contact["value"] for contact in listed["contacts"]]
    assert len(rows) == listed["counts"]["email"]


def test_an_export_is_harmless_in_a_spreadsheet(world: World) -> None:
    formula = SeenContact(ContactKind.EMAIL, '=cmd|"/c calc"!a1@firma.ru', 0.1, "text", "https://firma.ru/")
    company = world.store.companies.all(DEFAULT_TENANT, limit=1)[0]
    world.store.contacts.keep(DEFAULT_TENANT, company.id, [formula], NOW)

    done = run_program(["contacts", "export"], world.environment, world.folder)

    cells = [cell for row in csv.reader(done.stdout.splitlines()) for cell in row]
    assert any("=cmd" in cell for cell in cells)
    assert not any(cell.startswith("=") for cell in cells)


def test_the_web_is_the_same_for_the_same_seed() -> None:
    again = CompanyWeb(COUNT, SEED)
    assert again.truth() == CompanyWeb(COUNT, SEED).truth()
    assert again.truth() != CompanyWeb(COUNT, SEED + 1).truth()
