"""sendonce sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import urlsplit

import typer

from sendonce.entrypoints.cli.output import JsonFlag, print_json, say
from sendonce.errors import Unavailable


def sandbox(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 4580,
    directory: Annotated[Path, typer.Option("--dir", help="Where its log of acceptances is kept.")] = Path(
        "sandbox"
    ),
    events_url: Annotated[
        str, typer.Option(help="Where it posts delivery events.")
    ] = "http://127.0.0.1:3000/ses-events",
    max_rate: Annotated[float, typer.Option(help="Letters a second that it accepts.")] = 14.0,
    bounce_share: Annotated[float, typer.Option(min=0, max=1, help="Share of recipients that bounce.")] = 0.0,
    complaint_share: Annotated[float, typer.Option(min=0, max=1, help="Share that complain.")] = 0.0,
    seed: Annotated[
        int | None, typer.Option(help="The seed of all dice; else that of --dir, or a new one.")
    ] = None,
    mailbox: Annotated[
        bool, typer.Option("--mailbox", help="Play a mail provider (SMTP and IMAP), and send through it.")
    ] = False,
    second_region: Annotated[
        str, typer.Option(help="Play SES in a second region too, with faults of its own: eu-west-1.")
    ] = "",
    json: JsonFlag = False,
) -> None:
    """Run a stand-in for Amazon SES and SNS, Notion, Yandex Search and a language model on loopback.

    It prints the settings that point sendonce to it. Ctrl-C or SIGTERM stops it.
    """
    import uvloop

    from sendonce.sandbox import SandboxAddresses, SandboxSettings, serve_until_signal

    settings = SandboxSettings(
        directory=directory,
        port=port,
        events_url=events_url,
        max_rate=max_rate,
        bounce_share=bounce_share,
        complaint_share=complaint_share,
        seed=seed,
        mailbox=mailbox,
        second_region=second_region,
    )

    def announce(addresses: SandboxAddresses) -> None:
        environment = {**addresses.environment(), **_for_letters_that_leave(events_url, directory)}
        if json:
            print_json({"endpoint": addresses.endpoint, "environment": environment})
            sys.stdout.flush()
            return
        say(f"The sandbox is at {addresses.endpoint}. What you may ask of it: {addresses.control}")
        say(f"Accepted letters: {addresses.accepted_log}\nSet these for sendonce:\n")
        for name, value in environment.items():
            say(f"{name}={quote(value)}")
        sys.stdout.flush()

    try:
        uvloop.run(serve_until_signal(settings, announce))
    except OSError as exc:
        raise Unavailable(
            f"The sandbox cannot go on: {exc.strerror or exc}. It needs the port {port} and the folder "
            f"{directory}: give others with --port (0 takes a free one) and --dir."
        ) from exc


def _for_letters_that_leave(events_url: str, directory: Path) -> dict[str, str]:
    """What sendonce asks for before a letter leaves, with values that are good enough for a rehearsal."""
    from sendonce.sandbox.secrets import kept_secrets

    receiver = urlsplit(events_url or "http://127.0.0.1:3000")
    listens = {"PORT": str(receiver.port)} if receiver.port else {}
    return {
        **listens,
        "APP_BASE_URL": f"{receiver.scheme}://{receiver.netloc}",
        "MAIL_FOOTER_ADDRESS": "Rehearsal, 1 Example Street",
        **kept_secrets(directory, ("UNSUBSCRIBE_SECRET", "EXECUTOR_SHARED_SECRET")),
    }
