"""Exports of other newsletter tools: whoever left there is not written to from here."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.adapters.sources.subscribers_csv import read_subscribers
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.domain.people.told_states import ColumnKind, StateRules, Told, kind_of, read_word
from sendonce.errors import BadInput, RefusedByRule

R = SuppressionReason
LEFT, BOUNCED, COMPLAINED = R.UNSUBSCRIBED, R.BOUNCE, R.COMPLAINT

# A header as the tool writes it, a line for each state that its export tells, and what must come of the line:
# None for somebody who may be written to, "out" for somebody who is left out.
MAILCHIMP = (
    '"Email Address","First Name","Last Name",MEMBER_RATING,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP,'
    "LATITUDE,LONGITUDE,GMTOFF,DSTOFF,TIMEZONE,CC,REGION,{more}LAST_CHANGED,LEID,EUID,NOTES,TAGS"
)
_SINCE = '2,"2018-02-12 17:59:31",,"2018-02-12 18:06:58",192.0.2.7,,,,,,,,'
EXPORTS: dict[str, tuple[str, list[tuple[str, object]]]] = {
    "mailchimp subscribed": (
        MAILCHIMP.format(more=""),
        [(f'{{}},Ann,Lee,{_SINCE}"2024-01-01 10:00:00",339,8b66,,', None)],
    ),
    "mailchimp unsubscribed": (
        MAILCHIMP.format(
            more="UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_REASON_OTHER,"
        ),
        [
            (
                f'{{}},Ann,Lee,{_SINCE}"2024-03-01 10:00:00",May news,1a2b,NORMAL,,"2024-01-01",339,8b66,,',
                LEFT,
            ),
            (f'{{}},,,{_SINCE}"2024-03-01 10:00:00",,,ABUSE,,"2024-01-01",339,8b66,,', COMPLAINED),
        ],
    ),
    "mailchimp cleaned": (
        MAILCHIMP.format(more="CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,CLEAN_CAMPAIGN_ID,"),
        [
            (f'{{}},,,{_SINCE}"2024-03-01 10:00:00",May news,1a2b,"2024-01-01",339,8b66,,', BOUNCED),
            (f'{{}},,,{_SINCE}"2024-03-01 10:00:00",,,"2024-01-01",339,8b66,,', BOUNCED),
        ],
    ),
    "brevo": (
        "CONTACT ID;EMAIL;FIRSTNAME;LASTNAME;SMS;EMAIL_BLACKLIST;SMS_BLACKLIST;ADDED_TIME;MODIFIED_TIME",
        [("1;{};Ann;Lee;;false;true;;", None), ("2;{};Bob;;;true;false;;", LEFT)],
    ),
    "brevo, another order": (
        "EMAIL,BLACKLIST_EMAIL,FIRSTNAME,DOUBLE_OPT-IN",
        [("{},0,Ann,2", None), ("{},1,Bob,1", LEFT)],
    ),
    "substack": (
        "email,active_subscription,expiry,plan,email_disabled,created_at,first_payment_at",
        [
            ("{},false,,other,false,2025-01-01T00:00:00.000Z,", None),
            ("{},true,2026-01-01,yearly,true,2025-01-01T00:00:00.000Z,", LEFT),
        ],
    ),
    "ghost": (
        "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,"
        "labels,tiers",
        [
            ("6,{},Ann,,true,false,,2024-01-15T10:00:00.000Z,,,", None),
            ("7,{},Bob,,false,true,,2024-01-15T10:00:00.000Z,,,", LEFT),
            ("8,{},Cyd,,true,false,,2024-01-15T10:00:00.000Z,2025-01-15T10:00:00.000Z,,", LEFT),
        ],
    ),
    "listmonk": (
        "uuid,email,name,attributes,status,created_at,updated_at",
        [
            ('1,{},Ann,"{{""city"": ""Riga""}}",enabled,2024-01-01,2024-01-01', None),
            ("2,{},Bob,{{}},disabled,2024-01-01,2024-01-01", LEFT),
            ("3,{},Cyd,{{}},blocklisted,2024-01-01,2024-01-01", LEFT),
        ],
    ),
    "listmonk, a list": (
        "email,name,status,subscription_status",
        [
            ("{},Ann,enabled,confirmed", None),
            ("{},Bob,enabled,unsubscribed", LEFT),
            ("{},Cyd,enabled,unconfirmed", "out"),
        ],
    ),
    "buttondown": (
        "email,notes,metadata,tags,referrer_url,creation_date,type,source,unsubscription_date,"
        "unsubscription_reason",
        [
            ("{},,{{}},,,2024-01-01,regular,import,,", None),
            ("{},,{{}},,,2024-01-01,premium,api,,", None),
            ("{},,{{}},,,2024-01-01,unactivated,api,,", "out"),
            ("{},,{{}},,,2024-01-01,unsubscribed,api,2024-05-01,too much", LEFT),
            ("{},,{{}},,,2024-01-01,regular,api,2024-05-01,", LEFT),
            ("{},,{{}},,,2024-01-01,undeliverable,api,,", BOUNCED),
            ("{},,{{}},,,2024-01-01,complained,api,,", COMPLAINED),
        ],
    ),
    "getresponse": (
        '"email","name","created on","origin","IP","day of cycle","city"',
        [("{},Ann,2024-01-01,import,,,Riga", None)],
    ),
    "getresponse unsubscribed": (
        '"email","name","unsubscribed on","reason"',
        [("{},Ann,2024-01-01 10:00,link in a message", LEFT)],
    ),
    "getresponse bounced": (
        '"email","name","bounced on","bounce type"',
        [
            ("{},Ann,2024-01-01,hard", BOUNCED),
            ("{},Bob,2024-01-01,", BOUNCED),
            ("{},Cyd,,hard", BOUNCED),
        ],
    ),
    "mailerlite": (
        "Email,Status,Sent,Opens,Clicks,Subscribed,Unsubscribed,Location,Name,Last name",
        [
            ("{},Active,12,3,1,2024-01-01 10:00:00,,Riga,Ann,Lee", None),
            ("{},Unsubscribed,12,3,1,2024-01-01 10:00:00,2024-05-01 09:00:00,,Bob,", LEFT),
            ("{},Active,12,3,1,2024-01-01 10:00:00,2024-05-01 09:00:00,,Fay,", LEFT),
            ("{},Bounced,1,0,0,2024-01-01 10:00:00,,,Cyd,", BOUNCED),
            ("{},Unconfirmed,0,0,0,2024-01-01 10:00:00,,,Dan,", "out"),
            ("{},Junk,0,0,0,2024-01-01 10:00:00,,,Eve,", COMPLAINED),
        ],
    ),
    "mailerlite classic": (
        "Subscriber,Name,Status",
        [("{},Ann,active", None), ("{},Bob,unsubscribed", LEFT)],
    ),
    "sendpulse": (
        "Email;Статус;Дата добавления;Имя",
        [
            ("{};Активный;01.02.2024;Анна", None),
            ("{};Отписался;01.02.2024;Борис", LEFT),
            ("{};Неактивный;01.02.2024;Вера", LEFT),
            ("{};Жалоба на спам;01.02.2024;Глеб", COMPLAINED),
        ],
    ),
    "unisender": (
        "email,Name,email_status,email_availability,email_add_time,email_confirm_time,email_list_ids,"
        "email_subscribe_times,email_unsubscribed_list_ids,tags",
        [
            ("{},Анна,active,available,2024-01-01,2024-01-01,17,2024-01-01,,", None),
            ("{},Вера,active,mailbox_full,2024-01-01,2024-01-01,17,2024-01-01,,", None),
            ("{},Борис,unsubscribed,available,2024-01-01,,17,2024-01-01,,", LEFT),
            ("{},Глеб,active,available,2024-01-01,,17,2024-01-01,18,", LEFT),
            ("{},Дина,active,unreachable,2024-01-01,,17,2024-01-01,,", BOUNCED),
            ("{},Ева,invited,available,2024-01-01,,17,2024-01-01,,", "out"),
        ],
    ),
    "phplist": (
        "id,email,confirmed,blacklisted,optedin,bouncecount",
        [
            ("1,{},1,0,1,0", None),
            ("2,{},0,0,1,0", "out"),
            ("3,{},1,1,1,4", LEFT),
        ],
    ),
    "a list with reasons only": ("email,Unsubscribe reason", [("{},no time", LEFT), ("{},spam", COMPLAINED)]),
    "unisender, russian": (
        "E-mail;Имя;Статус подписки;Доступность;Дата отписки",
        [
            ("{};Анна;Подписан;Доступен;", None),
            ("{};Борис;Отписался от всех рассылок;Доступен;", LEFT),
            ("{};Вера;Подписана;Недоступен;", BOUNCED),
            ("{};Глеб;Подписан;Доступен;12.05.2024", LEFT),
        ],
    ),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_the_export_of_a_tool_is_read_for_who_left(tmp_path: Path, tool: str) -> None:
    """Each line as its tool means it, whichever of several columns says no."""
    header, lines = EXPORTS[tool]
    texts = [line.format(f"p{number}@example.com") for number, (line, _) in enumerate(lines)]
    path = tmp_path / "list.csv"
    path.write_text("\n".join([header, *texts]) + "\n")
    chunks = list(read_subscribers(path))
    found: dict[str, object] = {}
    for chunk in chunks:
        found |= dict.fromkeys(chunk.people.keys)
        found |= {key: denial.reason for key, denial in chunk.people.denials.items()}
        found |= {f"p{bad.line - 2}@example.com": "out" for bad in chunk.bad}
    assert found == {f"p{number}@example.com": told for number, (_, told) in enumerate(lines)}


def refused(tmp_path: Path, content: str, name: str = "list.csv", **rules: object) -> str:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(RefusedByRule) as refusal:
        list(read_subscribers(path, states=StateRules(**rules)))  # type: ignore[arg-type]
    return str(refusal.value)


@pytest.mark.parametrize(
    ("title", "values"),
    [
        ("Status", ["active", "gold"]),
        ("subscriber_state", ["1", "2"]),
        ("subscribed", ["yes", ""]),
        ("Subscription", ["monthly"]),
        ("bounces", ["0", "3"]),
        ("opt_out_type", ["7"]),
        ("State", ["gone", "here"]),
        ("UNSUB_TIME", ["2024-01-01", ""]),
        ("CLEAN_TIME", ["2024-01-01", ""]),
        ("Статус", ["золотой"]),
        ("type", ["unsubscribed", "gold"]),
        ("Unsubscribe reason", ["no time", ""]),
    ],
)
def test_a_state_that_cannot_be_read_is_asked_about(tmp_path: Path, title: str, values: list[str]) -> None:
    """The last of many lines is enough; the answer names column, value and what to add."""
    lines = [f"p{number}@example.com,{value}" for number, value in enumerate(values)]
    told = refused(tmp_path, "\n".join([f"email,{title}", *lines]) + "\n")
    assert f"column {title!r}" in told
    assert "--status-column" in told
    assert f'--ignore-column "{title}"' in told
    assert "Nothing was imported" in told


@pytest.mark.parametrize(
    ("title", "value", "answer"),
    [
        ("subscription_status", "Unconfirmed", '--status "Unconfirmed=active"'),
        # --status would make "no" mean active in every other column, too.
        ("confirmed", "no", '--ignore-column "confirmed"'),
    ],
)
def test_who_never_confirmed_is_named_with_column_and_value(
    tmp_path: Path, title: str, value: str, answer: str
) -> None:
    """The reason beside a line that was left out says how to take such people in all the same."""
    path = tmp_path / "list.csv"
    path.write_text(f"email,{title}\na@example.com,{value}\n")
    (chunk,) = read_subscribers(path)
    (bad,) = chunk.bad
    assert f"column {title!r} says {value!r}" in bad.reason
    assert answer in bad.reason


def test_everybody_who_never_confirmed_is_left_out_by_word(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("email\na@example.com\n")
    (chunk,) = read_subscribers(path, states=StateRules(everybody=Told.UNCONFIRMED))
    assert [bad.reason for bad in chunk.bad] == ["they never confirmed, as --as unconfirmed says"]


def test_the_answer_says_what_to_add_for_each_column_and_value(tmp_path: Path) -> None:
    """Whoever adds all of it is not stopped again."""
    told = refused(tmp_path, "email,Status,Статус\na@example.com,gold,да\nb@example.com,gone,да\n")
    assert '--status-column "Status" --status "gold=unsubscribed" --status "gone=unsubscribed"' in told
    assert '--status-column "Статус" --status "да=unsubscribed"' in told
    assert '--ignore-column "Статус"' in told


@pytest.mark.parametrize(
    ("title", "value"),
    [
        ("State", "NY"),
        ("unsubscribe_url", "https://example.com/u/1"),
        ("sms_blacklist", "true"),
        ("active_subscription", "false"),
        ("newsletter", "Weekly"),
        ("type", "company"),
        ("marital status", "single"),
        ("status_updated_at", "2024-01-01"),
        ("OPTIN_TIME", ""),
        ("tags", "unsubscribed"),
        ("bounce_count", "2"),
    ],
)
def test_what_only_sounds_like_a_state_is_an_attribute(tmp_path: Path, title: str, value: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"email,{title}\na@example.com,{value}\n")
    (chunk,) = read_subscribers(path)
    assert (chunk.people.keys, chunk.people.denials) == (["a@example.com"], {})


def test_a_person_says_what_values_mean(tmp_path: Path) -> None:
    """--status settles a value everywhere, --ignore-column takes a column out, --status-column adds one."""
    path = tmp_path / "list.csv"
    path.write_text("email,Status,Group\na@example.com,gold,x\nb@example.com,gone,x\nc@example.com,gold,y\n")
    meanings = {"gold": Told.ACTIVE, "gone": Told.UNSUBSCRIBED, "x": Told.ACTIVE, "y": Told.BOUNCED}
    (chunk,) = read_subscribers(path, states=StateRules(columns=("group",), values=meanings))
    assert {key: d.reason for key, d in chunk.people.denials.items()} == {
        "b@example.com": LEFT,
        "c@example.com": BOUNCED,
    }
    (chunk,) = read_subscribers(path, states=StateRules(ignored=("Status",)))
    assert chunk.people.denials == {}
    with pytest.raises(BadInput, match=r"no column 'Stat'.* Correct --ignore-column"):
        list(read_subscribers(path, states=StateRules(ignored=("Stat",))))


@pytest.mark.parametrize(
    "name",
    [
        *("unsubscribed_members_export_1.csv", "Bounces.csv", "opt-out.csv", "отписки.csv"),
        *("nonsubscribed_email_audience_export_1.csv", "Not subscribed.csv", "unconfirmed.csv"),
    ],
)
def test_a_list_named_like_people_to_spare_is_not_taken_for_subscribers(tmp_path: Path, name: str) -> None:
    """Some tools export them without a column that says so; the importing person has to."""
    assert "--as unsubscribed" in refused(tmp_path, "email,name\na@example.com,Ann\n", name)
    (chunk,) = read_subscribers(tmp_path / name, states=StateRules(everybody=Told.UNSUBSCRIBED))
    assert chunk.people.denials["a@example.com"].reason == LEFT
    (chunk,) = read_subscribers(tmp_path / name, states=StateRules(everybody=Told.ACTIVE))
    assert chunk.people.denials == {}


@pytest.mark.parametrize("name", ["subscribed_members_export_1.csv", "subscribers.csv", "confirmed.csv"])
def test_a_list_named_like_subscribers_is_taken_for_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("email,name\na@example.com,Ann\n")
    (chunk,) = read_subscribers(tmp_path / name)
    assert (chunk.people.keys, chunk.people.denials) == (["a@example.com"], {})


def test_titles_and_words_are_known_however_they_are_written() -> None:
    for title in ("Opt-Out", "opt_out", "OPTED OUT", "Unsubscribed?", "Is Unsubscribed", "Email Opt Out"):
        assert kind_of(title) == ColumnKind.OPTED_OUT
    for word in ("Unsubscribed", "UNSUBSCRIBED by admin", "opted-out", "Отписан(а)", "blocklisted"):
        assert read_word(word) == Told.UNSUBSCRIBED
    assert read_word("VIP") is None
