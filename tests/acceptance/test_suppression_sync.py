"""Our suppressions and the suppression list of an SES account: what either learns, the other knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from sendonce.adapters.stores.schema import suppressions
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from tests.acceptance.test_held_sender import Desk, at_work, world
from tests.crash.world import until

BOUNCE, COMPLAINT = SuppressionReason.BOUNCE, SuppressionReason.COMPLAINT


class Lists:
    """Ours through the command line, theirs through the client that AWS ships."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        environment = desk.environment
        self.ses: Any = boto3.client(
            "sesv2",
            endpoint_url=environment["AWS_ENDPOINT_URL_SESV2"],
            region_name=environment["AWS_REGION"],
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        )

    def theirs(self) -> list[str]:
        page = self.ses.list_suppressed_destinations()
        return [item["EmailAddress"] for item in page["SuppressedDestinationSummaries"]]

    def ours(self) -> dict[str, tuple[str, str, str]]:
        found = self.desk.json("suppression", "list")
        return {each["address"]: (each["scope"], each["reason"], each["note"]) for each in found}

    def sync(self, *flags: str) -> dict[str, Any]:
        (report,) = self.desk.json("suppression", "sync", *flags)
        return dict(report)

    def suppress(self, address: str, reason: SuppressionReason) -> None:
        """As an event of some minutes ago did."""
        with closing(open_store(self.desk.environment["DATABASE_URL"])) as store:
            store.suppressions.add(DEFAULT_TENANT, parse_address(address), reason)
            earlier = store.ledger.now() - timedelta(minutes=10)
            with store.database.writing() as tx:
                tx.execute(suppressions.update().values(created_at=earlier))


@pytest.fixture(params=("sqlite_url", "postgres_url"))
def lists(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lists]:
    desk = Desk(tmp_path, request.getfixturevalue(request.param))
    with world(desk):
        yield Lists(desk)


def test_what_either_learns_the_other_knows(lists: Lists) -> None:
    """Bounces and complaints go both ways, once; a dry run changes nothing."""
    lists.suppress("bounced@example.org", BOUNCE)
    lists.suppress("complained@example.org", COMPLAINT)
    lists.suppress("left@example.org", SuppressionReason.UNSUBSCRIBED)
    lists.ses.put_suppressed_destination(EmailAddress="theirs@example.org", Reason="COMPLAINT")
    tried = lists.sync("--dry-run")
    assert (tried["taken"], tried["told"]) == (1, 2)
    assert lists.theirs() == ["theirs@example.org"]
    done = lists.sync()
    assert (done["taken"], done["told"]) == (1, 2)
    assert lists.theirs() == ["bounced@example.org", "complained@example.org", "theirs@example.org"]
    assert lists.ours()["theirs@example.org"] == ("*", "complaint", "on the list of ses/us-east-1")
    again = lists.sync()
    assert (again["taken"], again["told"]) == (0, 0)


def test_what_they_forget_stays_suppressed_here(lists: Lists) -> None:
    lists.ses.put_suppressed_destination(EmailAddress="theirs@example.org", Reason="BOUNCE")
    lists.sync()
    lists.ses.delete_suppressed_destination(EmailAddress="theirs@example.org")
    lists.sync()
    assert "theirs@example.org" in lists.ours()


def test_what_a_person_allows_again_is_taken_off_their_list(lists: Lists) -> None:
    """Where lists are kept in step; and it does not come back with the next reading."""
    lists.ses.put_suppressed_destination(EmailAddress="theirs@example.org", Reason="BOUNCE")
    lists.sync()
    lists.desk.run("suppression", "remove", "theirs@example.org", "--global", SES_SUPPRESSION_SYNC="global")
    assert lists.sync()["lifted"] == 1
    assert lists.theirs() == []
    assert lists.ours() == {}


def test_erased_people_are_told_to_nobody(lists: Lists) -> None:
    """Only a hash of them is left."""
    lists.suppress("gone@example.org", BOUNCE)
    lists.desk.run("erase", "gone@example.org", "--yes")
    assert lists.sync()["told"] == 0
    assert lists.theirs() == []


def test_a_worker_keeps_the_lists_in_step_where_the_setting_says_so(lists: Lists) -> None:
    lists.suppress("bounced@example.org", BOUNCE)
    lists.desk.run("worker", "--until-idle")
    assert lists.theirs() == []
    with at_work(lists.desk, "worker", SES_SUPPRESSION_SYNC="global"):
        until(lists.theirs, 30, "the list of SES has the address")
    assert lists.theirs() == ["bounced@example.org"]
