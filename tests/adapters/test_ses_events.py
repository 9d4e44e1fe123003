"""SES events, as AWS documents them and as nobody should write them."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.events.ses_events import parse_ses_event
from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind
from sendonce.errors import BadInput

MAIL = {
    "timestamp": "2026-03-04T05:06:07.000Z",
    "messageId": "0100-mid",
    "destination": ["jane@example.com"],
    "tags": {"job": ["job-1"], "attempt": ["2"], "ses:configuration-set": ["events"]},
}
LATER = "2026-03-04T05:07:00.000Z"

BODIES: dict[str, dict[str, Any]] = {
    "Send": {"send": {}},
    "Delivery": {
        "delivery": {"timestamp": LATER, "recipients": ["jane@example.com"], "smtpResponse": "250 2.6.0 ok"}
    },
    "Bounce": {
        "bounce": {
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [
                {
                    "emailAddress": "jane@example.com",
                    "status": "5.1.1",
                    "diagnosticCode": "smtp; 550 5.1.1 no such user",
                }
            ],
            "timestamp": LATER,
            "feedbackId": "fb-1",
        }
    },
    "Complaint": {
        "complaint": {
            "complainedRecipients": [{"emailAddress": "Jane <jane@example.com>"}],
            "complaintFeedbackType": "abuse",
            "timestamp": LATER,
            "feedbackId": "fb-2",
        }
    },
    "DeliveryDelay": {
        "deliveryDelay": {
            "timestamp": LATER,
            "delayType": "MailboxFull",
            "delayedRecipients": [
                {"emailAddress": "jane@example.com", "status": "4.2.2", "diagnosticCode": "452 full"}
            ],
        }
    },
    "Reject": {"reject": {"reason": "Bad content"}},
    "Rendering Failure": {"failure": {"errorMessage": "no such attribute", "templateName": "t"}},
}

EXPECTED = {
    "Send": (EventKind.SENT, None, None),
    "Delivery": (EventKind.DELIVERED, None, "250 2.6.0 ok"),
    "Bounce": (EventKind.BOUNCE, "5.1.1", "smtp; 550 5.1.1 no such user"),
    "Complaint": (EventKind.COMPLAINT, "abuse", None),
    "DeliveryDelay": (EventKind.DEFERRED, "MailboxFull", "452 full"),
    "Reject": (EventKind.REJECT, None, "Bad content"),
    "Rendering Failure": (EventKind.REJECT, None, "no such attribute"),
}


def _message(name: str, key: str = "eventType", **changes: Any) -> str:
    return json.dumps({key: name, "mail": MAIL, **BODIES.get(name, {}), **changes})


def _parse(message: str, event_id: str = "sns-1") -> DeliveryEvent:
    event = parse_ses_event(message, event_id)
    assert event is not None
    return event


@pytest.mark.parametrize("name", list(BODIES))
def test_every_event_has_its_place(name: str) -> None:
    """Kind, code, reason, job, attempt, recipient and time of each event that SES documents."""
    event = _parse(_message(name))
    assert (event.kind, event.code, event.reason) == EXPECTED[name]
    assert (event.event_id, event.message_id, event.job_id, event.attempt) == (
        "sns-1",
        "0100-mid",
        "job-1",
        2,
    )
    assert (event.recipients, event.canary) == (("jane@example.com",), None)
    has_time = name not in ("Send", "Reject", "Rendering Failure")
    assert event.occurred_at == datetime(
        2026, 3, 4, 5, 7 if has_time else 6, 0 if has_time else 7, tzinfo=UTC
    )
    assert event.raw == json.loads(_message(name))


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("Permanent", BounceType.PERMANENT),
        ("Transient", BounceType.TRANSIENT),
        ("Undetermined", BounceType.UNDETERMINED),
        ("SomethingNew", BounceType.UNDETERMINED),
        (None, BounceType.UNDETERMINED),
    ],
)
def test_bounce_types(told: Any, meant: BounceType) -> None:
    """An unknown type of bounce is undetermined, and only bounces have one."""
    bounce = BODIES["Bounce"]["bounce"] | {"bounceType": told}
    event = _parse(_message("Bounce", bounce=bounce))
    assert (event.bounce_type, event.bounce_subtype) == (meant, "General")
    assert _parse(_message("Complaint")).bounce_type is None


@pytest.mark.parametrize("name", ["Open", "Click", "Subscription"])
def test_nobody_is_tracked(name: str) -> None:
    """Opens, clicks and SES's own subscriptions are none of our business."""
    assert parse_ses_event(_message(name), "x") is None


def test_greetings_are_not_events() -> None:
    """SES says hello to a new topic in plain words, and an identity in JSON."""
    assert parse_ses_event("Successfully validated SNS topic for Amazon SES event publishing.", "x") is None
    assert parse_ses_event(json.dumps({"notificationType": "AmazonSnsSubscriptionSucceeded"}), "x") is None


@pytest.mark.parametrize("name", list(BODIES))
def test_a_redelivery_is_the_same_fact(name: str) -> None:
    """Under another SNS id the natural key is the same; the key of another mail, kind or channel is not."""
    first, again = _parse(_message(name), "sns-1"), _parse(_message(name), "sns-2")
    assert first.natural_key == again.natural_key
    keys = {_parse(_message(other)).natural_key for other in BODIES}
    assert len(keys) == len(BODIES) - 1  # SES does not publish both kinds of reject for one mail
    assert _parse(_message(name, "notificationType")).natural_key != first.natural_key


def test_two_delays_are_two_facts() -> None:
    """The same mail may be delayed again later."""
    delay = BODIES["DeliveryDelay"]["deliveryDelay"] | {"timestamp": "2026-03-04T06:00:00Z"}
    assert (
        _parse(_message("DeliveryDelay", deliveryDelay=delay)).natural_key
        != _parse(_message("DeliveryDelay")).natural_key
    )


def test_a_notification_of_an_identity_has_no_tags() -> None:
    """It still tells who bounced, and which message."""
    mail = {key: value for key, value in MAIL.items() if key != "tags"}
    event = _parse(_message("Bounce", "notificationType", mail=mail))
    assert (event.job_id, event.attempt, event.message_id) == (None, None, "0100-mid")
    assert event.recipients == ("jane@example.com",)


def test_a_canary_is_no_job() -> None:
    """The canary's tag is read on its own."""
    event = _parse(_message("Send", mail=MAIL | {"tags": {"canary": ["c-1"]}}))
    assert (event.canary, event.job_id, event.attempt) == ("c-1", None, None)


@pytest.mark.parametrize(
    "tags",
    [
        None,
        [],
        {"job": "job-1", "attempt": 2},
        {"job": [], "attempt": []},
        {"job": ["a b"], "attempt": ["-1"]},
        {"job": [["x"]], "attempt": ["٣"]},
        {"job": ["x" * 300], "attempt": ["9" * 5000]},
    ],
)
def test_strange_tags_name_no_job(tags: Any) -> None:
    """The event is kept, without a job."""
    event = _parse(_message("Send", mail=MAIL | {"tags": tags}))
    assert (event.job_id, event.attempt) == (None, None)


def test_hostile_particulars_are_tamed() -> None:
    """A long text is cut; NUL, half surrogates and line ends do not get through, nor bad recipients."""
    hostile = {"emailAddress": "jane@example.com", "diagnosticCode": "a\0b\ud800\r\nX: y" + "z" * 9000}
    bounce = {
        "bounceType": ["x"],
        "bounceSubType": 7,
        "bouncedRecipients": [None, 7, {"emailAddress": 7}, {"emailAddress": "no-at"}, hostile],
        "timestamp": LATER,
    }
    event = _parse(_message("Bounce", bounce=bounce))
    assert event.reason is not None
    assert (len(event.reason), event.reason.isprintable()) == (500, True)
    assert (event.recipients, event.bounce_subtype) == (("jane@example.com",), None)
    stored = json.dumps(event.raw)
    assert "\\u0000" not in stored
    assert "\\ud800" not in stored


def test_a_long_list_of_recipients_is_cut() -> None:
    """SES takes fifty recipients a message: no event has more."""
    recipients = [f"u{number}@example.com" for number in range(5000)]
    event = _parse(_message("Delivery", delivery={"timestamp": LATER, "recipients": recipients}))
    assert len(event.recipients) == 50


@pytest.mark.parametrize(
    "message",
    [
        "",
        "hello",
        "[]",
        "{}",
        '{"eventType": 7}',
        '{"eventType": "Nonsense"}',
        '{"eventType": "Send"}',
        '{"eventType": "Send", "mail": {"timestamp": "never"}}',
        '{"eventType": "Send", "mail": {"timestamp": "0001-01-01T00:00:00+23:59"}}',
        '{"eventType": "Send", "eventType": "Bounce"}',
        "[" * 100_000,
        '{"a":' * 50_000,
        " " * 300_000,
        '{"eventType": "Send", "x": NaN}',
    ],
)
def test_what_is_not_an_event_is_bad_input(message: str) -> None:
    """A short reason, and no other exception."""
    with pytest.raises(BadInput) as refusal:
        parse_ses_event(message, "x")
    assert len(str(refusal.value)) < 300


_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_words = [
    *MAIL,
    "emailAddress",
    "bouncedRecipients",
    "recipients",
    "feedbackId",
    "bounceType",
    "job",
    "attempt",
]
_keys = st.sampled_from(_words) | st.text(max_size=4)
_json = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from([*BODIES, "Open", ""]), mail=_json, part=_json, whole=_json, valid=st.booleans())
def test_any_json_is_an_event_or_bad_input(name: str, mail: Any, part: Any, whole: Any, valid: bool) -> None:
    """Whatever shape comes, the answer is an event that can be stored, None, or BadInput."""
    field = next(iter(BODIES.get(name, {"part": {}})))
    mail = MAIL | (mail if isinstance(mail, dict) else {}) if valid else mail
    for value in (whole, {"eventType": name, "mail": mail, field: part}):
        try:
            event = parse_ses_event(json.dumps(value), "sns-1")
        except BadInput:
            continue
        if event is not None:
            json.dumps(event.raw, allow_nan=False).encode()
            "".join([event.natural_key, event.reason or "", event.code or "", *event.recipients]).encode()
            assert event.occurred_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("reason", "as_it_came"),
    [
        ("смтп; 550 нет такого ящика \N{PARTY POPPER}", True),
        ("a\\u0000b", False),
        ("half a pair \\ud83d", False),
        ("an escaped \\u0040, and an escaped slash \\/", False),
    ],
)
def test_a_plain_event_is_kept_as_it_came(sqlite_url: str, reason: str, as_it_came: bool) -> None:
    """Not written anew; but what cannot be stored is replaced, and an escaped letter is resolved, so that a
    search finds whoever asks to be erased."""
    message = (
        '{"eventType":  "Reject", "mail": {"timestamp": "2026-03-04T05:06:07Z"}, "reject": {"reason": "%s"}}'
    )
    text = message % reason
    event = parse_ses_event(text, "sns-1")
    assert event is not None
    with closing(open_store(sqlite_url)) as store:
        store.events.record(event)
        (kept,) = store.events.all()
        with store.database.reading() as tx:
            stored = tx.exec_driver_sql("SELECT raw FROM delivery_events").scalar_one()
    assert kept.raw == event.raw
    assert (stored == text) == as_it_came
    assert "\\u0000" not in stored
    assert "\\u0040" not in stored
