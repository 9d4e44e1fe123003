"""sendonce companies dedupe, review, undo, audit: which companies are one."""

from __future__ import annotations

import getpass
import random
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.audits import SAMPLE, Audit
from sendonce.domain.prospecting.companies import Company
from sendonce.domain.prospecting.duplicates import KnownPair, PairState
from sendonce.domain.prospecting.sites import shown_domain
from sendonce.entrypoints.cli.context import check_outputs, opened_prospects, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, say, say_error
from sendonce.entrypoints.cli.prospecting.companies import OutputOption, TenantOption

if TYPE_CHECKING:
    from sendonce.ports.prospecting import ProspectingStore

_AUDITED = ("company_id", "domain", "name", "city", "inn", "email", "same_as", "why", "verdict")


def dedupe(
    everything: Annotated[
        bool, typer.Option("--all", help="Compare every company again, not only those visited since.")
    ] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Merge companies that are one: the same tax number, or a site that moved. Names are only nominated."""
    from sendonce.flows.prospecting.find_duplicates import find_all_duplicates
    from sendonce.flows.prospecting.look_again import look_again

    with opened_prospects(ready_settings(quiet=True)) as store:
        clock = store.ledger.now
        if everything:
            look_again(store, TenantId(tenant), clock)
        looked = find_all_duplicates(store, "dedupe", clock)
        counts = store.duplicates.count(TenantId(tenant))
    merged, nominated = counts.get(PairState.MERGED, 0), counts.get(PairState.NOMINATED, 0)
    if json:
        print_json({"looked_at": looked, "merged_pairs": merged, "nominated_pairs": nominated})
        return
    say(
        f"Looked at {count_of(looked, 'company', 'companies')}. {count_of(merged, 'pair is', 'pairs are')} "
        f"merged, {nominated} wait for review: sendonce companies review."
    )


def review(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many pairs at most.")] = 50,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Decide on companies that may be one: y they are, n they are not, s later, q enough."""
    with opened_prospects(ready_settings(quiet=True)) as store:
        pairs = store.duplicates.pairs(TenantId(tenant), PairState.NOMINATED, limit=limit)
        if json:
            print_json([as_dict(pair) for pair in pairs])
            return
        if not pairs:
            say("No pair waits for review.")
        for place, pair in enumerate(pairs, 1):
            _show(pair, f"{place} of {len(pairs)}")
            answer = _answer()
            if answer == "q":
                break
            if answer != "s":
                _decide(store, TenantId(tenant), pair, one=answer == "y")


def _show(pair: KnownPair, place: str) -> None:
    say(f"\nPair {place}: the same {pair.evidence}, {pair.value}")
    for title, company in (("found first", pair.primary), ("found later", pair.duplicate)):
        told = (company.name, company.city, company.inn and f"ИНН {company.inn}", company.website_url)
        say(f"  {title}: {shown_domain(company.domain)}  {' · '.join(filter(None, told))}")


def _answer() -> str:
    """Typed by a person, or piped in by a program: the end of the input is enough."""
    sys.stderr.write("One company? [y/n/s/q] ")
    sys.stderr.flush()
    for line in sys.stdin:
        if (word := line.strip().lower()[:1]) in ("y", "n", "s", "q"):
            return word
        sys.stderr.write("Type y, n, s or q: ")
        sys.stderr.flush()
    return "q"


def _decide(store: ProspectingStore, tenant_id: TenantId, pair: KnownPair, *, one: bool) -> None:
    from sendonce.flows.prospecting.review_pair import review_pair

    actor, now = getpass.getuser(), store.ledger.now()
    review_pair(store.duplicates, tenant_id, pair.id, one=one, actor=actor, now=now)
    say("Merged." if one else "They stay two.")


def undo(
    company: Annotated[str, typer.Argument(help="Its domain, or the beginning of its id.")],
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Take a company apart from those that it was merged with. It is visited again, and is never merged with
    them again by itself."""
    from sendonce.flows.prospecting.undo_merges import undo_merges

    with opened_prospects(ready_settings(quiet=True)) as store:
        found = _found(store, TenantId(tenant), company)
        undone = undo_merges(store.duplicates, found, getpass.getuser(), store.ledger.now())
        now = store.companies.get(found.tenant_id, found.id)
    if json:
        print_json({"undone_pairs": undone, "company": as_dict(now) if now else None})
        return
    say(f"{shown_domain(found.domain)} is a company of its own again: {count_of(undone, 'merge')} undone.")


def _found(store: ProspectingStore, tenant_id: TenantId, name: str) -> Company:
    from sendonce.flows.prospecting.find_company import find_company
    from sendonce.wiring.prospecting import site_reader

    return find_company(store.companies, site_reader(), tenant_id, name)


def audit(
    size: Annotated[int, typer.Option("--sample", min=1, max=100_000, help="How many companies.")] = SAMPLE,
    seed: Annotated[int | None, typer.Option(help="Draws the same sample again.")] = None,
    output: OutputOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Draw the sample of the contact list that would show companies that stand on it twice."""
    from sendonce.flows.prospecting.audit_companies import audit_companies

    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    with opened_prospects(settings) as store:
        found = audit_companies(store, TenantId(tenant), size, seed)
    if output:
        _write(found, output)
    if json:
        print_json({**as_dict(found), "share": found.share})
        return
    _say_audit(found, output)


def _write(found: Audit, output: Any) -> None:
    from sendonce.wiring.files import csv_table

    with csv_table(output, _AUDITED, even_if_empty=True) as table:
        for row in found.rows:
            table.write([*as_dict(row).values(), ""])


def _say_audit(found: Audit, output: Any) -> None:
    if not found.listed:
        say("No company is on the contact list yet: 'sendonce prospect run' fills it.")
        return
    say(
        f"{count_of(found.listed, 'company', 'companies')} on the contact list; "
        f"{found.repeated} repeated ({found.share:.2%}, the target is at most {found.target:.1%})."
    )
    say(
        f"Sample of {found.sampled}, seed {found.seed}: {found.suspect} may stand there twice, "
        f"so at most {found.at_most:.2%} of the list do (at 95 %)."
    )
    for row in found.rows:
        if row.same_as:
            say(f"  {shown_domain(row.domain)}: {row.same_as} ({row.why})")
    if output:
        say_error(f"The sample is in {output}: look at each line and write a verdict into its last column.")
    elif found.sampled:
        say_error("With -o FILE the sample is written as CSV, to be looked at line by line.")
