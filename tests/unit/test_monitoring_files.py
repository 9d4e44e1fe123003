"""The dashboard and the alert rules: they are well made, and name only what is exported."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sendonce.adapters.metrics import Metrics
from sendonce.domain.engine.alarms import Alarm
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.gauges import Gauges, rates_between
from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.mailbox.found import MailboxReading
from sendonce.domain.engine.outcomes import Accepted
from sendonce.domain.engine.overview import Overview
from sendonce.domain.engine.senders import SenderHold

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = (DEPLOY / "grafana" / "sendonce.json").read_text(encoding="utf-8")
RULES = (DEPLOY / "prometheus" / "sendonce.rules.yml").read_text(encoding="utf-8")
PROMTOOL = DEPLOY.parent / ".stamp" / "prometheus" / "usr" / "bin" / "promtool"
NOW = datetime(2026, 11, 16, tzinfo=UTC)
BOOKS = Books(planned=110, sent=100, delivered=90, bounced=5, complained=1, failed=4, dead=6)
OVERVIEW = Overview(
    now=Gauges(NOW, BOOKS, 12.0, {}),
    rates=rates_between(Books(), BOOKS),
    tenants={"acme": BOOKS},
    alarms=[Alarm("queue age", "A letter waits.", NOW, told=True)],
    holds=[SenderHold("smtp/host/me@acme.example", "535", "wrong password", NOW, NOW, 1)],
    workers=[],
    mailboxes=[MailboxReading("me@acme.example@host:993", NOW, {"reply": 3}, None, None)],
    last_event=NOW,
)


def page() -> str:
    metrics = Metrics(lambda: {"dead": 6}, lambda: 12.0, overview=lambda: OVERVIEW)
    metrics.count_outcome("ses", Accepted("id"))
    metrics.count_event(EventKind.BOUNCE, EventVerdict.APPLIED)
    metrics.observe_turn(1, 1, 0.01)
    return metrics.render().decode()


def exported() -> dict[str, float]:
    """Each sample with its labels in order: ``name{label=value}``."""
    found = {}
    for family in text_string_to_metric_families(page()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def named_in(text: str) -> set[str]:
    return set(re.findall(r"sendonce_[a-z_]+", text))


def test_every_metric_that_is_shown_or_watched_is_exported() -> None:
    names = {sample.partition("{")[0] for sample in exported()}
    assert named_in(DASHBOARD) | named_in(RULES)
    assert not (named_in(DASHBOARD) | named_in(RULES)) - names


def expressions() -> list[str]:
    """Those of the rules and of the dashboard's panels."""
    rules = [rule["expr"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
    panels = json.loads(DASHBOARD)["panels"]
    return rules + [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_label_that_is_asked_for_is_exported() -> None:
    """A selector with a label that no sample has finds nothing, and an alert on it never comes."""
    labels: dict[str, set[str]] = {}
    for sample in exported():
        name, _, pairs = sample.rstrip("}").partition("{")
        labels.setdefault(name, {"le"}).update(pair.partition("=")[0] for pair in pairs.split(",") if pair)
    asked = [found for text in expressions() for found in re.findall(r"(sendonce_[a-z_]+)\{([^}]*)\}", text)]
    assert asked
    for name, selector in asked:
        assert set(re.findall(r"(\w+)\s*=", selector)) <= labels[name], f"{name}{{{selector}}}"
    for text in expressions():
        grouped = {label for names in re.findall(r"by \(([^)]*)\)", text) for label in names.split(", ")}
        of_metrics = set[str]().union(*(labels[name] for name in named_in(text)))
        assert grouped <= of_metrics, text


@pytest.mark.long
def test_prometheus_can_read_every_expression(tmp_path: Path) -> None:
    """By its own promtool. Grafana puts an interval in for its variable."""
    ready = [text.replace("$__rate_interval", "5m") for text in expressions()]
    rules = [{"record": f"expression_{number}", "expr": text} for number, text in enumerate(ready)]
    file = tmp_path / "expressions.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}), encoding="utf-8")
    for each in (file, DEPLOY / "prometheus" / "sendonce.rules.yml"):
        command = [PROMTOOL, "check", "rules", str(each)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_metrics_of_the_house() -> None:
    found = exported()
    assert found["sendonce_letters_total{result=bounced}"] == 5
    assert found["sendonce_tenant_letters{result=sent,tenant=acme}"] == 100
    assert found["sendonce_tenant_success_ratio{tenant=acme}"] == 95 / 110
    assert found["sendonce_delivery_ratio{}"] == 0.9
    assert (found["sendonce_alarms{}"], found["sendonce_held_senders{}"]) == (1, 1)
    assert found["sendonce_mailbox_messages_total{kind=reply}"] == 3
    assert found["sendonce_mailbox_last_read_timestamp_seconds{}"] == NOW.timestamp()


def test_no_address_is_on_the_page() -> None:
    assert "@" not in page()


def test_the_dashboard_can_be_imported() -> None:
    """Into any Grafana: the data source is asked for, ids are its own, and no panel lies on another."""
    dashboard = json.loads(DASHBOARD)
    panels = dashboard["panels"]
    assert dashboard["schemaVersion"] >= 39
    assert [it["type"] for it in dashboard["templating"]["list"]] == ["datasource"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [cell for panel in panels for cell in _cells(panel["gridPos"])]
    assert len(set(cells)) == len(cells)
    for panel in panels:
        assert panel["targets"], panel["title"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    assert place["x"] + place["w"] <= 24
    across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return [(x, y) for x in across for y in down]


def test_every_alert_says_what_it_is_about() -> None:
    (group,) = yaml.safe_load(RULES)["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names)
    for rule in group["rules"]:
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warning", "critical")
