"""The files for deployments, and the pages about them, say what is so."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.routing import Route
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sendonce.entrypoints.cli.app import app as cli
from sendonce.settings import DECLARED

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OURS = ("app", "worker", "scheduler", "prospect-scheduler", "prospect-worker", "migrate")
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))

# Variables of the programs around sendonce: PostgreSQL's image, Compose, Python, pip.
OF_OTHERS = {"BIND_ADDRESS", "PATH"} | {f"POSTGRES_{name}" for name in ("USER", "DB", "PASSWORD")}
OF_OTHERS |= {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
OF_OTHERS |= {"PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR"}
# What a reader of a page sets for the page's own sake.
OF_PAGES = OF_OTHERS | {"ID", "TOPIC"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# -- Docker ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return parsed


def last_stage() -> str:
    return DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def test_the_image_is_built_from_locked_wheels() -> None:
    """Every installation from an index demands hashes; our own package is installed without one."""
    code = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    installs = re.findall(r"pip[^&\n]* install [^&\n]*", code)
    assert len(installs) == 3
    for install in installs:
        assert ("--require-hashes" in install and "--only-binary=:all:" in install) or "--no-index" in install
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.12-slim@sha256:[0-9a-f]{64}", bases[0])


def test_the_image_runs_as_a_user_without_rights_and_keeps_database_and_state_apart() -> None:
    """A numeric user that is not root, set before the command. A snapshot of the database's volume must not
    take back the state, which is how an old database is noticed."""
    stage = last_stage()
    assert re.search(r"^USER 10001:10001$", stage, re.MULTILINE)
    assert 'VOLUME ["/data", "/state"]' in stage
    environment = dict(re.findall(r"([A-Z_]+)=(\S+)", stage))
    assert environment["DATABASE_URL"] == "sqlite:////data/sendonce.db"
    assert environment["STATE_DIR"] == "/state"
    assert environment["HOST"] == "0.0.0.0"
    assert "/healthz" in stage
    assert stage.rstrip().endswith('ENTRYPOINT ["sendonce"]\nCMD ["serve"]')


def test_nothing_secret_can_get_into_the_build() -> None:
    """The build sees only what is named: everything is excluded first."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    admitted = {rule[1:] for rule in rules if rule.startswith("!")}
    assert all((ROOT / name).exists() for name in admitted)
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert {source.rstrip("/") for line in copied for source in line.split()} == admitted
    assert not any("env" in name for name in admitted)


def test_every_service_of_ours_is_locked_in_and_keeps_its_state(compose: dict[str, Any]) -> None:
    """Read-only root, no capabilities, no new ones, and a state volume that outlives the container."""
    assert set(compose["services"]) == {*OURS, "db"}
    for name in OURS:
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"] == ["/tmp"]
        assert service["ulimits"]["nofile"] >= 4096
        assert service["volumes"] == ["state:/state"]
        assert service["environment"]["STATE_DIR"] == "/state"
        assert service["environment"]["DATABASE_URL"].startswith("postgresql://")
        assert int(service["stop_grace_period"].rstrip("s")) > 10
    assert set(compose["volumes"]) == {"state", "database"}


def test_the_services_come_up_in_order_and_come_back(compose: dict[str, Any]) -> None:
    """PostgreSQL 16 is healthy first, then the schema is right, then the rest starts."""
    services = compose["services"]
    assert services["db"]["image"].startswith("postgres:16@sha256:")
    assert "pg_isready" in services["db"]["healthcheck"]["test"][1]
    assert services["db"]["volumes"] == ["database:/var/lib/postgresql/data"]
    assert services["migrate"]["depends_on"]["db"]["condition"] == "service_healthy"
    assert services["migrate"]["restart"] == "no"
    for name in ("app", "worker", "scheduler", "prospect-scheduler", "prospect-worker"):
        waits_for = services[name]["depends_on"]
        assert waits_for["migrate"]["condition"] == "service_completed_successfully"
        assert services[name]["restart"] == "unless-stopped"
    assert services["db"]["restart"] == "unless-stopped"
    assert services["app"]["ports"] == ["${BIND_ADDRESS:-127.0.0.1}:${PORT:-3000}:3000"]


def test_only_the_service_with_a_port_is_asked_for_its_health(compose: dict[str, Any]) -> None:
    """The image's health check looks at /healthz, which the other commands do not have."""
    for name in OURS:
        disabled = compose["services"][name].get("healthcheck", {}).get("disable", False)
        assert disabled == (name != "app")


def test_what_the_containers_run_are_commands(compose: dict[str, Any]) -> None:
    """Each is one of the program's own, with options that it has."""
    for name in OURS:
        check_command(compose["services"][name]["command"], f"docker-compose.yml, {name}")


# -- systemd -----------------------------------------------------------------------------------------


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(page(path))
    return parser


@pytest.mark.parametrize("path", UNITS, ids=named)
def test_the_units_are_hardened_as_the_page_says(path: Path) -> None:
    """No root, no capabilities, two writable directories, and time for the letters on the wire."""
    service = unit(path)["Service"]
    assert service["User"] == "sendonce"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"].split() == ["sendonce", "sendonce-state"]
    assert "STATE_DIR=/var/lib/sendonce-state" in service["Environment"]
    assert service["WorkingDirectory"] == "/var/lib/sendonce", (
        "an SQLite file lies there, apart from the state"
    )
    assert service["CapabilityBoundingSet"] == ""
    for switch in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces"):
        assert service[switch] == "true"
    assert int(service["TimeoutStopSec"]) > 16
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2 3"
    assert unit(path)["Unit"]["StartLimitIntervalSec"] == "0", "a flood could keep it down"
    assert int(service["RestartSec"]) >= 1
    assert int(service["LimitNOFILE"]) >= 4096
    assert "ProcSubset" not in service, "the boot id is read from /proc/sys"


@pytest.mark.parametrize("path", UNITS, ids=named)
def test_the_units_run_commands_that_exist(path: Path) -> None:
    """With options that they have."""
    program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
    assert program.endswith("/.venv/bin/sendonce")
    check_command(words, named(path))


# -- Vercel ------------------------------------------------------------------------------------------


def test_the_cron_calls_what_the_app_has_and_the_function_is_there() -> None:
    """GET, every minute, within the longest tick; and every path goes to the one function."""
    from sendonce.entrypoints.http import app as http_app
    from sendonce.entrypoints.vercel import LONGEST_TICK

    given = json.loads((ROOT / "vercel.json").read_text(encoding="utf-8"))
    (function,) = given["functions"]
    assert (ROOT / function).is_file()
    assert given["rewrites"] == [{"source": "/(.*)", "destination": "/api/index"}]
    (cron,) = given["crons"]
    path, _, query = cron["path"].partition("?")
    assert query == f"seconds={LONGEST_TICK:g}"
    assert re.search(rf'Route\("{path}", [^)]*"GET"', Path(http_app.__file__).read_text(encoding="utf-8"))
    assert Route(path, lambda _: None).path == path


# -- variables ---------------------------------------------------------------------------------------


def variables_in_files() -> Iterator[tuple[str, str]]:
    for name in re.findall(r"\b([A-Z][A-Z_]+)=", DOCKERFILE):
        yield "Dockerfile", name
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    for name in re.findall(r"^\s+([A-Z][A-Z_]+):|\$\{([A-Z_]+)", text, re.MULTILINE):
        yield "docker-compose.yml", name[0] or name[1]
    for path in UNITS:
        for pair in unit(path)["Service"]["Environment"].split():
            yield named(path), pair.partition("=")[0]


def test_every_variable_in_the_files_is_a_setting() -> None:
    """Or belongs to a program around sendonce, and stands in the list above."""
    strange = [(file, name) for file, name in variables_in_files() if name not in {*DECLARED, *OF_OTHERS}]
    assert not strange


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_variable_that_a_page_sets_is_a_setting(path: Path) -> None:
    """In the lines that readers copy."""
    given = re.findall(r"^([A-Z][A-Z0-9_]+)=", "\n".join(fences(path, "sh")), re.MULTILINE)
    assert not set(given) - set(DECLARED) - OF_PAGES


# -- commands ----------------------------------------------------------------------------------------


def fences(path: Path, language: str) -> list[str]:
    return re.findall(rf"^[ ]*```{language}\n(.*?)^[ ]*```", page(path), re.MULTILINE | re.DOTALL)


def commands_in(path: Path) -> Iterator[list[str]]:
    """The words after ``sendonce`` in code that readers copy, and in code within the text."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page(path), flags=re.DOTALL))
    lines = "\n".join(fences(path, "sh")).replace("\\\n", " ").splitlines()
    for code in [*spans, *(line.partition("  #")[0] for line in lines)]:
        for found in re.finditer(r"(?:^|[\s/])sendonce ([a-z][^&;|<>`]*(?:\\?\|[a-z-]+)*[^&;|<>`]*)", code):
            yield found[1].replace("\\|", "|").split()
    for line in lines:
        if found := re.match(rf"docker compose run .* (?:{'|'.join(OURS)}) (.+)", line):
            yield found[1].split()


def check_command(words: list[str], where: str) -> None:
    command: Any = get_command(cli)
    said = f"{where} says 'sendonce {' '.join(words)}'"
    for place, word in enumerate(words):
        if not isinstance(command, TyperGroup):
            check_options(command, words[place:], said)
            return
        names = [name for name in word.split("|") if name != "…"]
        missing = [name for name in names if name not in command.commands]
        assert not missing, f"{said}: there is no {missing[0]}"
        if not names:
            return
        command = command.commands[names[-1]]


def check_options(command: TyperCommand, words: list[str], said: str) -> None:
    known = {"--help", *(name for it in command.params for name in [*it.opts, *it.secondary_opts])}
    for word in words:
        option = word.strip("[](),.").partition("=")[0]
        assert not option.startswith("--") or option in known, f"{said}: it has no {option}"


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_command_on_a_page_exists(path: Path) -> None:
    """Nobody is told to run what is not there, nor with an option that is not there."""
    for words in commands_in(path):
        check_command(words, named(path))


def test_commands_on_pages_are_found_at_all() -> None:
    """The search itself works: in blocks, in text, after a path, in a container."""
    found = [" ".join(words) for path in PAGES for words in commands_in(path)]
    expected = {"db adopt", "settings", "mailout send ID --detach", "mailout status ID", "serve --no-worker"}
    assert not expected - set(found)


def test_the_readme_says_what_sendonce_does_not_do() -> None:
    """Whoever needs one of these should not find out after the import."""
    readme = page(ROOT / "README.md")
    _, title, rest = readme.partition("## What it does not do, on purpose\n")
    assert title
    listed = rest.partition("\n## ")[0]
    missing = [it for it in ("segments", "A/B tests", "opens and clicks", "funnels") if it not in listed]
    assert not missing


# -- links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_between_pages_resolve(path: Path) -> None:
    """Every relative link leads to a file that is there."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page(path), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    broken = [it for it in targets if "://" not in it and not (path.parent / it).exists()]
    assert not broken


def test_every_page_of_instructions_says_what_was_not_tried() -> None:
    """A deployment that nobody has run is not sold as one that works."""
    for name in ("deploy-with-docker", "deploy-with-systemd", "deploy-on-vercel"):
        assert "## What was checked" in page(ROOT / "docs" / "how-to" / f"{name}.md")
