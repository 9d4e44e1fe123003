"""The peers: installed where they are missing, run as processes, their own count checked against the sink."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import letters
from bench.processes import PROGRAMS, ROOT, BenchFailed, Finished, run
from bench.sinks import Count, SmtpSink

ENVIRONMENT = ROOT / ".stamp" / "bench" / "aiosmtplib"
SMTP_SOURCE = Path("/usr/sbin/smtp-source")


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of somebody over a number of letters."""

    letters: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.letters / self.seconds


@dataclass(frozen=True, slots=True)
class Peer:
    """``pace`` is how many letters it gets for each one of the fastest peers: the slow need no more."""

    name: str
    send: Callable[[SmtpSink, int], Pass]
    pace: float = 1.0


# -- installing ------------------------------------------------------------------------------------


def install_all(say: Callable[[str], None]) -> dict[str, str]:
    """Install what is missing. What cannot be had is left out: its name and why."""
    missing: dict[str, str] = {}
    steps = {
        "postfix": install_postfix,
        "nodemailer": _install_nodemailer,
        "aiosmtplib": _install_aiosmtplib,
    }
    for name, install in steps.items():
        try:
            install(say)
        except (OSError, subprocess.CalledProcessError, BenchFailed) as exc:
            missing[name] = str(exc)
            say(f"{name} is not here: {exc}")
    return missing


def install_postfix(say: Callable[[str], None]) -> None:
    """Debian's package, for two programs of it. Its daemon is not started, now or at boot."""
    if SMTP_SOURCE.exists():
        return
    fix = "apt-get install -y --no-install-recommends postfix"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise BenchFailed(f"smtp-source and smtp-sink are missing: as root, run '{fix}'")
    say(f"Installing smtp-source and smtp-sink: {fix}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # A policy that says 101 keeps invoke-rc.d from starting the daemon.
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        subprocess.run(["apt-get", "update", "-q"], check=True, env=quiet, capture_output=True)
        subprocess.run(fix.split(), check=True, env=quiet, capture_output=True)
    finally:
        if ours:
            policy.unlink()


def _install_nodemailer(say: Callable[[str], None]) -> None:
    if (PROGRAMS / "node_modules" / "nodemailer").exists():
        return
    if shutil.which("npm") is None:
        raise BenchFailed("npm is missing: apt-get install nodejs npm")
    say("Installing nodemailer from npm")
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=PROGRAMS, check=True, capture_output=True)


def _install_aiosmtplib(say: Callable[[str], None]) -> None:
    done = ENVIRONMENT / ".done"
    if done.exists():
        return
    say("Installing aiosmtplib from PyPI")
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True, capture_output=True)
    pip = [str(ENVIRONMENT / "bin" / "pip"), "install", "-q", "--require-hashes", "-r"]
    subprocess.run([*pip, str(PROGRAMS / "requirements.txt")], check=True, capture_output=True)
    done.touch()


# -- sending ---------------------------------------------------------------------------------------


def smtp_peers(folder: Path, missing: dict[str, str]) -> list[Peer]:
    letter = str(letters.write_for_peers(folder / "letter.json"))
    message = folder / "message.eml"
    message.write_bytes(letters.one_message())
    peers = [Peer("smtp-source -s 16 -d", lambda sink, count: _smtp_source(sink, count, message))]
    if "nodemailer" not in missing:
        program = ["node", str(PROGRAMS / "nodemailer_pool.js")]
        peers.append(Peer("nodemailer pool of 16", _told_by(program, ["16", letter]), 0.1))
    program = [sys.executable, str(PROGRAMS / "smtplib_loop.py")]
    peers.append(Peer("smtplib + email.message", _told_by(program, [letter]), 0.05))
    if "aiosmtplib" not in missing:
        program = [str(ENVIRONMENT / "bin" / "python"), str(PROGRAMS / "aiosmtplib_pool.py")]
        peers.append(Peer("aiosmtplib, 16 connections", _told_by(program, ["16", letter]), 0.05))
    return peers


def _smtp_source(sink: SmtpSink, count: int, message: Path) -> Pass:
    """C, starts in a millisecond: its time is that of the process."""
    count = count // 16 * 16
    address = f"127.0.0.1:{sink.port}"
    envelope = ["-f", letters.SENDER, "-t", "reader@bench.example", "-F", str(message)]
    counted = Count(sink)
    done = run([SMTP_SOURCE, "-s", "16", "-d", "-m", str(count), *envelope, address])
    counted.check(count, "smtp-source")
    return Pass(count, done.seconds, done.cpu)


def _told_by(program: list[str], more: list[str]) -> Callable[[SmtpSink, int], Pass]:
    """A program that takes a port and a count, and tells how long its sending took."""

    def send(sink: SmtpSink, count: int) -> Pass:
        counted = Count(sink)
        done = run([*program, str(sink.port), str(count), *more])
        counted.check(count, program[-1])
        return as_pass(done)

    return send


def smtplib_over(port: int, count: int, letter: Path) -> Pass:
    """smtplib over a port of its own, a slow link for instance."""
    return as_pass(run([sys.executable, PROGRAMS / "smtplib_loop.py", str(port), str(count), str(letter)]))


def boto3_threads(url: str, count: int, threads: int, message: Path) -> Pass:
    program = str(PROGRAMS / "boto3_threads.py")
    return as_pass(run([sys.executable, program, url, str(count), str(threads), str(message)]))


def as_pass(done: Finished) -> Pass:
    return Pass(done.json["sent"], done.json["seconds"], done.cpu)
