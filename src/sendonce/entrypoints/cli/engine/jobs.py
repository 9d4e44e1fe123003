"""sendonce jobs …"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.checks import count_of, listed
from sendonce.domain.engine.dead_letters import DeadCause
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.entrypoints.cli.context import find_mailout, opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput, RefusedByRule

if TYPE_CHECKING:
    from sendonce.flows.engine.retry_jobs import RetryReport

group = typer.Typer(name="jobs", help="Message jobs: one letter to one recipient each.", no_args_is_help=True)

MailoutOption = Annotated[str | None, typer.Option("--mailout", help="Only those of this mailout.")]
WorkerOption = Annotated[str | None, typer.Option("--worker", help="Only those of this worker: one crash.")]
LimitOption = Annotated[int, typer.Option(min=1, max=100_000, help="How many at the most.")]
JobIds = Annotated[list[str] | None, typer.Argument(help="Job ids.")]
MOST_NAMED = 20
_MOST_CODES = 4
PARKED_ADVICE = (
    "Parked letters wait for your word. Find out whether they were taken (the provider's console or log, the "
    "recipient), then run 'sendonce jobs resolve sent ID…', or 'sendonce jobs resolve not-sent ID…' to send "
    "them again. A letter that stays parked is never sent twice."
)

SEARCH_ADVICE = (
    "Whether a letter was taken, the folder of sent letters may show (Gmail: all mail). Type into its search:"
)


class Verdict(StrEnum):
    SENT = "sent"
    NOT_SENT = "not-sent"


@group.command("list")
def list_(
    state: Annotated[JobState | None, typer.Option(help="Only those in this state.")] = None,
    mailout: MailoutOption = None,
    limit: LimitOption = 100,
    json: JsonFlag = False,
) -> None:
    """Show message jobs."""
    _show([state] if state else [], mailout, limit, json)


@group.command("in-doubt")
def in_doubt(mailout: MailoutOption = None, limit: LimitOption = 1000, json: JsonFlag = False) -> None:
    """Show jobs whose letter may or may not have been taken by the provider, and what each waits for."""
    from sendonce.flows.engine.resolve_doubts import weigh_doubts
    from sendonce.wiring.doubts import doubt_quiet, search_for

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout_id = find_mailout(store, mailout).id if mailout else None
        found = weigh_doubts(
            store,
            doubt_quiet(settings),
            dispatch_id=mailout_id,
            limit=limit,
            sent_folder=settings.imap_server_files_sent,
        )
        weighed = {doubt.job_id: each for doubt, each in found}
        jobs = store.jobs.list(states=[JobState.IN_DOUBT], dispatch_id=mailout_id, limit=limit)
        shown = [(job, weighed[job.id]) for job in jobs if job.id in weighed]
        searches = {job.id: search_for(settings, store, job) for job, _ in shown}
    if json:
        print_json(
            [
                {**as_dict(job), "parked": each.parked, "why": each.why, "search": searches[job.id]}
                for job, each in shown
            ]
        )
        return
    rows = [(job.id, job.recipient, job.attempt, each.standing, each.why) for job, each in shown]
    title = count_of(len(rows), "job in doubt", "jobs in doubt")
    print_table(title, ["id", "recipient", "attempt", "standing", "why"], rows)
    if any(each.parked for _, each in shown):
        say(PARKED_ADVICE)
    typed = [search for search in searches.values() if search is not None]
    if typed:
        say(SEARCH_ADVICE)
        for search in typed:
            say(f"  {search}")


@group.command()
def dead(mailout: MailoutOption = None, json: JsonFlag = False) -> None:
    """Show why letters died whose tries are used up, and what to do ('jobs list --state dead' shows each)."""
    from sendonce.flows.engine.group_dead import group_dead

    with opened_store(ready_settings()) as store:
        groups = group_dead(store, find_mailout(store, mailout).id if mailout else None)
    if json:
        print_json([{**as_dict(group), "advice": group.advice} for group in groups])
        return
    total = sum(group.count for group in groups)
    rows = [(each.cause, each.count, _codes(each.codes), each.sample.reason, each.advice) for each in groups]
    title = count_of(total, "dead letter")
    print_table(title, ["cause", "letters", "codes", "for example", "what to do"], rows)
    if groups:
        say("Retry those of one cause: sendonce jobs retry --cause CAUSE")


def _codes(codes: Mapping[str, int]) -> str:
    return ", ".join(f"{code} ({count})" for code, count in [*codes.items()][:_MOST_CODES])


@group.command()
def resolve(
    verdict: Annotated[
        Verdict, typer.Argument(help="What you know: 'sent', or 'not-sent' (it is sent anew).")
    ],
    job_ids: JobIds = None,
    mailout: MailoutOption = None,
    worker: WorkerOption = None,
    note: Annotated[str, typer.Option(help="How you know; kept in the audit log.")] = "",
    json: JsonFlag = False,
) -> None:
    """Settle jobs in doubt by your word: those named, or all of a mailout or of a worker's crash."""
    from sendonce.flows.engine.resolve_by_word import Word, resolve_by_word

    with opened_store(ready_settings()) as store:
        word = Word(
            sent=verdict == Verdict.SENT,
            jobs=job_ids or (),
            dispatch_id=find_mailout(store, mailout).id if mailout else None,
            worker_id=worker,
            note=note,
        )
        done = resolve_by_word(store, word, getpass.getuser())
    _report(done.moved, done.asked, "resolved", json)
    if not done.moved:
        raise RefusedByRule("Only jobs in doubt can be resolved: 'sendonce jobs in-doubt' lists them.")


@group.command()
def retry(
    job_ids: JobIds = None,
    mailout: MailoutOption = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Failed letters only; without --mailout, those of all mailouts.")
    ] = False,
    code: Annotated[str | None, typer.Option("--code", help="Only those that ended with this code.")] = None,
    cause: Annotated[
        DeadCause | None,
        typer.Option("--cause", help="Dead letters of this cause ('jobs dead'); with --failed, failed ones."),
    ] = None,
    not_sent_elsewhere: Annotated[
        bool,
        typer.Option("--not-sent-elsewhere", help="You know that no other copy of the database sent them."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Give dead or failed letters another life: those named, or all of a mailout."""
    from sendonce.flows.engine.find_jobs import find_jobs
    from sendonce.flows.engine.retry_jobs import RetryOrder, retry_all, retry_named

    if job_ids and (mailout or failed or code or cause):
        raise BadInput(
            "Name the jobs, or choose them with --mailout, --failed, --code and --cause: not both."
        )
    if not (job_ids or mailout or failed or cause):
        raise BadInput(
            "Name the jobs, or give --mailout ID, --failed or --cause CAUSE: see 'sendonce jobs dead'."
        )
    with opened_store(ready_settings()) as store:
        if job_ids:
            jobs = find_jobs(store, job_ids)
            report = retry_named(store, jobs, getpass.getuser(), not_sent_elsewhere=not_sent_elsewhere)
        else:
            either = [JobState.DEAD] if cause else [JobState.DEAD, JobState.FAILED]
            states = [JobState.FAILED] if failed else either
            mailout_id = find_mailout(store, mailout).id if mailout else None
            order = RetryOrder(states, mailout_id, code, not_sent_elsewhere, cause)
            report = retry_all(store, order, getpass.getuser())
    _report_retry(report, json)


def _report_retry(report: RetryReport, json: bool) -> None:
    kinds = [{"state": state, "code": code, "count": n} for (state, code), n in sorted(report.found.items())]
    if json:
        left = {"left": report.left} if report.left else {}
        print_json({"moved": report.moved, "asked": report.asked, "found": kinds, **left})
    if report.left and not report.moved:
        raise RefusedByRule(f"Nothing was scheduled again. {_why_left(report.left)}")
    if not report.moved:
        raise RefusedByRule(
            "Nothing was scheduled again: of those chosen, only dead and failed letters could be."
        )
    if not json:
        ways = ", ".join(f"{kind['count']} {kind['state']} with {kind['code']}" for kind in kinds)
        of_all = f" of {report.asked}" if report.left else ""
        say(f"Scheduled {count_of(report.moved, 'letter')}{of_all} again ({ways}).")
        if report.left:
            say(_why_left(report.left))


def _why_left(job_ids: Sequence[str]) -> str:
    return (
        f"{count_of(len(job_ids), 'letter')} had ended before this database was adopted and may have been "
        "sent from another copy since: whoever got one would get it again "
        f"(jobs {listed(job_ids, MOST_NAMED)}). If you know that none was sent, add --not-sent-elsewhere."
    )


def _report(moved: int, asked: int, what: str, json: bool) -> None:
    if json:
        print_json({"moved": moved, "asked": asked})
    else:
        say(f"{moved} of {count_of(asked, 'job')} {what}.")


def _show(states: Sequence[JobState], mailout: str | None, limit: int, json: bool) -> None:
    with opened_store(ready_settings()) as store:
        mailout_id = find_mailout(store, mailout).id if mailout else None
        jobs = store.jobs.list(states=states, dispatch_id=mailout_id, limit=limit)
    if json:
        print_json([as_dict(job) for job in jobs])
        return
    columns = ["id", "recipient", "state", "attempt", "reason"]
    print_table(count_of(len(jobs), "job"), columns, map(_row, jobs))


def _row(job: Job) -> tuple[object, ...]:
    return job.id, job.recipient, job.state, job.attempt, job.reason or job.code
