"""Door A as its users walk through it: Notion or a file, the command line, HTTP, and nothing else."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.house import SECRET, House, ask, housed

PEOPLE = 40


on_every_store = pytest.mark.parametrize("house", ["sqlite_url", "postgres_url"], indirect=True)


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """On SQLite, unless a test says otherwise."""
    url = request.getfixturevalue(getattr(request, "param", "sqlite_url"))
    with housed(tmp_path, url) as found:
        lines = ["E-mail;Имя;Город"]
        lines += [f"reader{n}@example.org;Читатель {n};Псков" for n in range(PEOPLE)]
        lines += ["gone+bounce@example.org;Борис;", "angry+complaint@example.org;Анна;", "not an address;X;"]
        (tmp_path / "list.csv").write_text("\n".join(lines), encoding="utf-8")
        yield found


def sample_page(house: House) -> str:
    """The sandbox's Notion has a letter that is ready to be sent."""
    text = ask(f"{house.sandbox.endpoint}/sandbox/notion").text
    line = next(line for line in text.splitlines() if line.startswith("letter"))
    return line.split()[1]


def page(house: House, page_id: str) -> dict[str, object]:
    found = ask(f"{house.sandbox.endpoint}/sandbox/notion/pages/{page_id}").json
    properties: dict[str, object] = found["properties"]
    return properties


@on_every_store
def test_a_page_of_notion_goes_to_every_active_subscriber_once(house: House) -> None:
    """From a list and a page to a report, with a bounce, a complaint and an unsubscription on the way."""
    imported = house.json("subscribers", "import", "list.csv")
    assert (imported["inserted"], imported["invalid"]) == (PEOPLE + 2, 1)

    letter = sample_page(house)
    started = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
    assert started.status == 200
    assert started.json["status"] == "sending"
    mailout_id = started.json["mailout_id"]
    assert house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET}).status == 409
    assert house.post("/send-mailout", {"mailout_id": letter, "auth_token": "wrong"}).status == 401

    house.wait_for(mailout_id, "sent")
    assert len(house.accepted()) == len(set(house.accepted())) == PEOPLE + 2
    house.wait_until(lambda: page(house, letter)["Вернулось"] == 1, "the bounce is counted in Notion")
    house.wait_until(lambda: page(house, letter)["Жалобы"] == 1, "the complaint is counted in Notion")
    house.wait_until(lambda: page(house, letter)["Доставлено"] == PEOPLE + 1, "the deliveries are counted")
    house.wait_until(lambda: page(house, letter)["Статус"] == "Отправлено", "Notion shows it as sent")
    assert page(house, letter)["Отправлено"] == PEOPLE + 2

    again = house.run("mailout", "create", "--notion", letter).stdout
    assert f"{mailout_id} is sent" in again
    assert "mailout report" in again
    assert "mailout send" not in again

    people = {p["email"]: p["status"] for p in house.json("subscribers", "list")["subscribers"]}
    assert people["gone+bounce@example.org"] == "bounced"
    assert people["angry+complaint@example.org"] == "unsubscribed"

    link = house.unsubscribe_link("reader7@example.org")
    assert ask(link, b"List-Unsubscribe=One-Click", method="POST").status == 200
    second = house.folder / "second.md"
    second.write_text('---\nsubject: "Ещё раз, {{ name }}"\n---\n\nПривет, {{ name }}!\n', encoding="utf-8")
    created = house.json("mailout", "create", str(second))
    assert created["status"] == "ready"
    counts = house.json("mailout", "send", created["id"])["counts"]
    assert counts["planned"] == counts["sent"] == PEOPLE - 1
    assert house.accepted().count("reader7@example.org") == 1
    assert house.accepted().count("gone+bounce@example.org") == 1
    assert house.accepted().count("angry+complaint@example.org") == 1


def test_the_button_in_notion_may_be_pressed_again(house: House) -> None:
    """A repeat gets 200 with the state, and nothing is sent a second time."""
    house.json("subscribers", "import", "list.csv")
    letter = sample_page(house)
    press = {
        "page": letter,
        "url": f"{house.url}/send-mailout",
        "headers": {"X-Mailout-Token": SECRET},
    }
    answers = [ask(f"{house.sandbox.endpoint}/sandbox/notion/press", press).json for _ in range(2)]
    assert [answer["status"] for answer in answers] == [200, 200]
    mailout = house.json("mailout", "list")[0]
    house.wait_for(mailout["id"], "sent")
    assert ask(f"{house.sandbox.endpoint}/sandbox/notion/press", press).json["status"] == 200
    assert len(house.accepted()) == len(set(house.accepted())) == PEOPLE + 2


def test_a_test_goes_to_the_testers_only_and_consumes_nothing(house: House) -> None:
    """is_test in the request or on the page: marked letters to TEST_EMAILS, any number of times."""
    house.json("subscribers", "import", "list.csv")
    letter = sample_page(house)
    for _ in range(2):
        answer = house.post("/send-mailout", {"mailout_id": letter, "is_test": True, "auth_token": SECRET})
        house.wait_for(answer.json["mailout_id"], "sent")
    ask(
        f"{house.sandbox.endpoint}/sandbox/notion/pages/{letter}",
        {"properties": {"Тест": True}},
        method="PATCH",
    )
    answer = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
    house.wait_for(answer.json["mailout_id"], "ready")
    house.wait_until(lambda: len(house.accepted()) == 3, "the third test is out")
    assert set(house.accepted()) == {"tester@example.org"}
    message = email.message_from_string(house.letter_to("tester@example.org"), policy=email.policy.default)
    assert message["subject"].startswith("[TEST] ")
    assert page(house, letter)["Статус"] == "Черновик"
    ask(
        f"{house.sandbox.endpoint}/sandbox/notion/pages/{letter}",
        {"properties": {"Тест": False, "Статус": "Готово к отправке"}},
        method="PATCH",
    )
    answer = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
    assert answer.status == 200
    house.wait_for(answer.json["mailout_id"], "sent")


def test_what_cannot_be_sent_goes_back_to_ready_with_the_reason(house: House) -> None:
    """An empty audience and an unresolved variable stop a mailout before its first letter."""
    letter = house.folder / "letter.md"
    letter.write_text("---\nsubject: Hello\n---\n\nYour town is {{ город }}.\n", encoding="utf-8")
    created = house.json("mailout", "create", str(letter))
    nobody = house.run("mailout", "send", created["id"], code=3)
    assert "no active subscriber" in nobody.stderr
    house.json("subscribers", "import", "list.csv")
    unresolved = house.run("mailout", "send", created["id"], code=3)
    assert "{{ город }} has no value for 2 active subscribers" in unresolved.stderr
    assert house.json("mailout", "status", created["id"])["status"] == "ready"
    assert house.accepted() == []

    page_id = sample_page(house)
    ask(f"{house.sandbox.endpoint}/sandbox/notion/share", {"id": page_id, "shared": False})
    answer = house.post("/send-mailout", {"mailout_id": page_id, "auth_token": SECRET})
    shown = house.wait_for(answer.json["mailout_id"], "ready")
    assert "share" in shown["reason"].lower()


@on_every_store
def test_notion_may_be_down_when_the_button_is_pressed(house: House) -> None:
    """The answer comes at once, the mailout waits for its page, and Notion is told when it is back."""
    house.json("subscribers", "import", "list.csv")
    letter = sample_page(house)
    faults = f"{house.sandbox.endpoint}/sandbox/notion/faults"
    ask(faults, {"bad_gateway": 1.0})
    answer = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
    assert answer.status == 200
    assert house.mailout(answer.json["mailout_id"])["phase"] == "fetching"
    ask(faults, method="DELETE")
    house.wait_for(answer.json["mailout_id"], "sent", 60)
    house.wait_until(lambda: page(house, letter)["Статус"] == "Отправлено", "Notion shows it as sent", 60)


def test_a_draft_and_a_copy_of_a_sent_page_are_not_sent(house: House) -> None:
    """Whoever presses, the page's own word counts; it gets the reason and keeps its status."""
    house.json("subscribers", "import", "list.csv")
    letter = sample_page(house)
    address = f"{house.sandbox.endpoint}/sandbox/notion/pages/{letter}"
    for status in ("Черновик", "Отправлено"):
        ask(address, {"properties": {"Статус": status}}, method="PATCH")
        answer = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
        shown = house.wait_for(answer.json["mailout_id"], "ready")
        assert f"«{status}»" in shown["reason"]
        house.wait_until(
            lambda status=status: f"«{status}»" in str(page(house, letter)["Причина"]),
            "Notion has the reason",
        )
        assert page(house, letter)["Статус"] == status
    assert house.accepted() == []
    ask(address, {"properties": {"Статус": "Готово к отправке"}}, method="PATCH")
    answer = house.post("/send-mailout", {"mailout_id": letter, "auth_token": SECRET})
    house.wait_for(answer.json["mailout_id"], "sent")
    house.wait_until(lambda: page(house, letter)["Статус"] == "Отправлено", "Notion shows it as sent")


def test_a_dry_run_leaves_nothing_behind(house: House) -> None:
    house.json("subscribers", "import", "list.csv")
    wish = {"mailout_id": sample_page(house), "dry_run": True, "auth_token": SECRET}
    answer = house.post("/send-mailout", wish)
    assert (answer.status, answer.json["status"], answer.json["planned"]) == (200, "dry_run", PEOPLE + 2)
    assert house.json("mailout", "list") == []


def test_a_letter_without_a_word_is_refused(house: House) -> None:
    empty = house.folder / "empty.md"
    empty.write_text("---\nsubject: Nothing\n---\n\n", encoding="utf-8")
    assert "neither a word nor an image" in house.run("mailout", "create", str(empty), code=3).stderr
