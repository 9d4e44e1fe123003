"""``python -m sendonce.sandbox --dir DIR --port 0 …`` prints one JSON line with the addresses, and serves."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from sendonce.errors import SendonceError
from sendonce.sandbox.settings import SandboxAddresses, SandboxSettings
from sendonce.sandbox.world import serve_until_signal

_READERS: dict[str, Any] = {
    "int": int,
    "int | None": int,
    "float": float,
    "str": str,
    "tuple[str, ...]": lambda text: tuple(word.strip() for word in text.split(",") if word.strip()),
    "Mapping[str, Any]": json.loads,
}


def read_arguments(arguments: list[str]) -> SandboxSettings:
    parser = argparse.ArgumentParser(
        prog="sendonce.sandbox",
        description="A small world that plays Amazon SES, SNS, Notion, Yandex and a language model.",
    )
    parser.add_argument("--dir", dest="directory", type=Path, required=True, help="where its files are kept")
    for option in fields(SandboxSettings):
        if option.name != "directory":
            _add_option(parser, option)
    return SandboxSettings(**vars(parser.parse_args(arguments)))


def _add_option(parser: argparse.ArgumentParser, option: Field[Any]) -> None:
    flag = "--" + option.name.replace("_", "-")
    help_text = option.metadata["help"].replace("%", "%%")
    default = {} if option.default is MISSING else option.default
    if option.type == "bool":
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=help_text)
    else:
        reader = _READERS[str(option.type)]
        parser.add_argument(flag, type=reader, default=default, help=f"{help_text} (now: {default})")


def _announce(addresses: SandboxAddresses) -> None:
    sys.stdout.write(json.dumps(addresses.summary()) + "\n")
    sys.stdout.flush()


def main() -> int:
    try:
        settings = read_arguments(sys.argv[1:])
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            runner.run(serve_until_signal(settings, _announce))
    except SendonceError as exc:
        sys.stderr.write(f"{exc}\n")
        return exc.exit_code
    except OSError as exc:
        sys.stderr.write(f"The sandbox cannot go on: {exc}\n")
        return 1
    return 0


def _fast_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


if __name__ == "__main__":
    sys.exit(main())
