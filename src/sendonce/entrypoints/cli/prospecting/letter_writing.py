"""sendonce letters write and plan: from briefs and companies to letters, and to slots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import opened_prospects, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.entrypoints.cli.prospecting.written_letters import TenantOption, bytes_of
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.domain.prospecting.pipeline import StepCount
    from sendonce.settings import Settings


def write(
    brief: Annotated[
        Path | None, typer.Option("--brief", help="A JSON file: company, offer, contact, pages. - is stdin.")
    ] = None,
    language: Annotated[str, typer.Option(help="Of one brief: ru or en; else that of its offer.")] = "",
    direction: Annotated[str | None, typer.Option(help="Write to the companies of this direction.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="To so many of them.")] = 100,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Write the letter of one brief and show its checks, or write to all companies of a direction.

    The letter of a brief is only shown. Those to companies are kept, and wait for their review.
    """
    if (brief is None) == (direction is None):
        raise BadInput("Give either --brief FILE for one letter, or --direction ID for all its companies.")
    settings = ready_settings(quiet=True)
    if brief is not None:
        _write_one(settings, brief, language, json)
        return
    from sendonce.flows.people.add_client import require_direction
    from sendonce.flows.prospecting.write_letters import write_letters
    from sendonce.wiring.written_letters import writing_rules

    with opened_prospects(settings) as store:
        named = require_direction(store, TenantId(tenant), direction or "")
        count = write_letters(store, TenantId(tenant), named, writing_rules(settings), limit)
    _tell(count, "written", json)


def _write_one(settings: Settings, file: Path, language: str, json: bool) -> None:
    from sendonce.domain.engine.strict_json import strict_object
    from sendonce.domain.people.legal_notices import opt_out_line
    from sendonce.domain.prospecting.brief_reading import read_brief, unused_fields
    from sendonce.domain.prospecting.letter_templates import with_notices
    from sendonce.entrypoints.cli.people.source_lines import naming_the_line
    from sendonce.flows.prospecting.write_letter import write_letter
    from sendonce.wiring.written_letters import letter_model

    source = bytes_of(file).removeprefix(b"\xef\xbb\xbf")
    read = strict_object(source, f"The brief {file}")
    with naming_the_line(file, source.decode("utf-8", "replace")):
        unused = unused_fields(read)
    given = read_brief(read, language)
    written = write_letter(given, letter_model(settings), settings.letters_nightly_budget)
    text = with_notices(written.text, [opt_out_line(written.language)])
    if json:
        letter = {**as_dict(written), "text": text, "to": given.contact.email or None}
        left_out = [*given.company.dropped, *unused]
        print_json({**letter, "left_out": left_out, "brief_hash": given.hash})
        return
    say(f"Subject: {written.subject}\n\n{text}\n")
    because = f": {written.refused}." if written.refused else "."
    say("By the model." if written.by == "llm" else f"By the template{because}")
    rows = [(check.name, "ok" if check.ok else "failed", ", ".join(check.found)) for check in written.checks]
    print_table("Checks", ["check", "result", "found"], rows)
    if unused:
        say(f"Of no use to a letter: {', '.join(unused)}.")


def plan(
    direction: Annotated[str, typer.Option(help="Whose approved letters.")],
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Give approved letters their slots within the daily limit; workers send them when their time comes."""
    from sendonce.flows.people.add_client import require_direction
    from sendonce.flows.prospecting.plan_written_letters import plan_written_letters
    from sendonce.wiring.written_letters import sending_rules

    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        named = require_direction(store, TenantId(tenant), direction)
        count = plan_written_letters(store, TenantId(tenant), named, sending_rules(settings))
    _tell(count, "planned", json)


def _tell(count: StepCount, what: str, json: bool) -> None:
    if json:
        print_json({what: count.done, "taken": count.taken, "note": count.note})
        return
    say(f"{count_of(count.done, 'letter')} {what}." + (f" {count.note}." if count.note else ""))
