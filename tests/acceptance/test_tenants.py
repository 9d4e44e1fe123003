"""One tenant's secret and another tenant's ids, at every route: as if the other did not exist."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.routing import Route

from sendonce.adapters.metrics import Metrics
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.schema import tenants
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.entrypoints.http import create_app
from sendonce.settings import load_settings
from tests.adapters.http_stage import BEARER, SECRET, UNSUBSCRIBE_SECRET, HttpStage, serving
from tests.conformance.stage import LETTER
from tests.conformance.test_privacy import everything

OTHER = "other"
PAGE = "01234567-89ab-cdef-0123-456789abcdef"
JANE = parse_address("jane@example.com")
# Both tenants have one and the same secret here: nothing but the tenant of the service may tell them apart.
TESTERS = {"TEST_EMAILS": "me@example.org"}

Ask = Callable[[str], tuple[str, str, Any]]
"""A request that has the given id in it: method, path, body."""


def send(**more: Any) -> Ask:
    return lambda name: ("POST", "/send-mailout", {"mailout_id": name, "auth_token": SECRET, **more})


MATRIX: dict[tuple[str, str], tuple[Ask, ...]] = {
    ("/mailouts/{mailout_id}", "GET"): (lambda name: ("GET", f"/mailouts/{name}", None),),
    ("/send-mailout", "POST"): (send(), send(dry_run=True), send(is_test=True)),
}
"""Every route that is asked with a tenant's secret for something that belongs to a tenant."""

NOT_BY_TENANT = {
    ("/unsubscribe", "GET"): "the signed link of one letter is all the right that it needs, see below",
    ("/unsubscribe", "POST"): "the same",
    ("/unsubscribe/undo", "POST"): "the same",
    ("/letter", "GET"): "the same: a signed link of one letter",
    ("/subscribe", "POST"): "open to strangers, for the tenant of the service; takes no id",
    ("/confirm", "GET"): "a signed link of one sign-up",
    ("/confirm", "POST"): "the same",
    ("/ses-events", "POST"): "signed by a topic of the installation; an event moves the job that it names",
    ("/webhooks/notion", "POST"): "signed by Notion; the page is read with the tenant's own token",
    ("/assets/{sha256}", "GET"): "open: images under the hash of their content",
    ("/tick", "GET"): "for whoever runs the installation; takes no id",
    ("/tick", "POST"): "the same",
    ("/metrics", "GET"): "for whoever runs the installation; sums, by tenant too",
    ("/healthz", "GET"): "open, tells nothing",
    ("/readyz", "GET"): "open, tells nothing",
    ("/openapi.json", "GET"): "open, the same for everybody",
}


def test_every_route_is_in_the_matrix_or_says_why_not() -> None:
    """Whoever adds a route decides here what another tenant's id does at it."""
    app = create_app(load_settings({"HOME": "/nowhere"}, dotenv=None), MemoryStore(), Metrics())
    served = {
        (route.path, method)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert served == MATRIX.keys() | NOT_BY_TENANT.keys()
    assert not MATRIX.keys() & NOT_BY_TENANT.keys()


@dataclass(frozen=True)
class Belongings:
    """What a tenant has."""

    ready: str
    sending: str
    page: str
    job: str

    def ids(self) -> list[str]:
        return [self.ready, self.sending, self.page, self.job, PAGE, PAGE.replace("-", "")]


def furnish(store: SqlStore, tenant_id: str) -> Belongings:
    """A subscriber, a mailout that is ready, one that is on its way, and one of a page."""
    store.subscribers.upsert(tenant_id, [NewSubscriber(JANE, "Jane", {})])
    ready, sending = (
        store.mailouts.create(tenant_id, NewMailout(f"secret of {tenant_id}", "file", LETTER)).id
        for _ in range(2)
    )
    page = store.mailouts.create(tenant_id, NewMailout("page", "notion", None, source_id=PAGE)).id
    assert store.mailouts.start(sending)
    store.mailouts.plan_chunk(sending, "planner", 100)
    (job,) = store.jobs.list(dispatch_id=sending)
    return Belongings(ready, sending, page, job.id)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def database_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(params=[DEFAULT_TENANT, OTHER])
def meeting(request: pytest.FixtureRequest, database_url: str) -> Iterator[tuple[HttpStage, Belongings]]:
    """The service of one tenant, and what the other one has in the same database."""
    theirs = OTHER if request.param == DEFAULT_TENANT else DEFAULT_TENANT
    with serving(database_url, TESTERS, tenant_id=request.param) as http:
        with http.store.database.writing() as tx:
            now = http.store.database.now(tx)
            tx.execute(sa.insert(tenants).values(id=OTHER, name=OTHER, created_at=now))
        yield http, furnish(http.store, theirs)


def test_the_ids_of_another_tenant_are_unknown(meeting: tuple[HttpStage, Belongings]) -> None:
    """Status and body are those of an id that nobody has, and not a row changes."""
    http, theirs = meeting
    before = everything(http.store)
    for (route, _), asks in MATRIX.items():
        for ask in asks:
            for known in theirs.ids():
                nobodys = str(uuid.uuid4()) if "-" in known else uuid.uuid4().hex
                got, unknown = (http.ask(*ask(name), BEARER) for name in (known, nobodys))
                assert got.status == unknown.status == 404, (route, known, got.text)
                assert got.text.replace(known, "") == unknown.text.replace(nobodys, "")
    assert everything(http.store) == before
    assert http.nudges == 0


def test_an_own_id_is_known(meeting: tuple[HttpStage, Belongings]) -> None:
    """So that the test above is not passed by a service that knows nothing."""
    http, _ = meeting
    own = DEFAULT_TENANT if http.store.subscribers.count(OTHER) else OTHER
    mine = furnish(http.store, own)
    assert http.ask("GET", f"/mailouts/{mine.ready}", None, BEARER).status == 200
    assert http.ask("GET", f"/mailouts/{PAGE}", None, BEARER).json["id"] == mine.page
    assert http.start(mine.ready, dry_run=True).json["planned"] == 1


def test_a_page_of_another_tenant_makes_a_mailout_of_ones_own(sqlite_url: str) -> None:
    """As any page does that is named for the first time: what the other made of it is not touched."""
    with serving(sqlite_url, {"NOTION_TOKEN": "ntn_x"}, tenant_id=DEFAULT_TENANT) as http:
        with http.store.database.writing() as tx:
            now = http.store.database.now(tx)
            tx.execute(sa.insert(tenants).values(id=OTHER, name=OTHER, created_at=now))
        theirs = furnish(http.store, OTHER)
        http.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(JANE, "Jane", {})])
        mine = http.start(PAGE).json["mailout_id"]
        assert mine != theirs.page
        untouched = http.store.mailouts.get(OTHER, theirs.page)
        assert untouched is not None
        assert untouched.started_at is None


def test_a_link_unsubscribes_from_the_tenant_who_wrote(meeting: tuple[HttpStage, Belongings]) -> None:
    """The other tenant's list keeps the person: they have not asked that one."""
    http, theirs = meeting
    whose = OTHER if http.store.subscribers.count(OTHER) else DEFAULT_TENANT
    mine = DEFAULT_TENANT if whose == OTHER else OTHER
    http.store.subscribers.upsert(mine, [NewSubscriber(JANE, "Jane", {})])
    token = sign_token(theirs.job, UNSUBSCRIBE_SECRET.encode())
    assert http.ask("POST", f"/unsubscribe?token={token}").status == 200
    assert http.store.suppressions.covers(whose, JANE) is not None
    assert http.store.suppressions.covers(mine, JANE) is None
    assert http.store.subscribers.count(mine) == {"active": 1}
