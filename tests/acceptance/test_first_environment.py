"""The environment that the first wishes name, plus a postal address: it starts, sends and unsubscribes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.acceptance.house import House, ask
from tests.crash.world import Process, SandboxSes, free_port

NAMES = {
    *("EXECUTOR_SHARED_SECRET", "APP_BASE_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("SES_FROM_EMAIL", "DATABASE_URL", "MAIL_FOOTER_ADDRESS"),
}
# Where the machine of the test is not the world: the stand-in's address, the port, and a home.
AROUND = {"AWS_ENDPOINT_URL_SESV2", "PORT", "HOME", "PATH", "PYTHONUTF8", "RATE_LIMIT_PER_SEC"}


def test_the_names_of_the_first_wishes_are_enough(tmp_path: Path, postgres_url: str) -> None:
    """No UNSUBSCRIBE_SECRET, no configuration set, no topic: letters leave, and their links work."""
    port = free_port()
    sandbox = SandboxSes(tmp_path / "sandbox", ["--max-rate=1000", "--keep-messages=100"])
    house = House(tmp_path, postgres_url, sandbox, port)
    house.environment = {name: value for name, value in house.environment.items() if name in NAMES | AROUND}
    house.environment |= {"HOME": str(tmp_path), "SES_FROM_EMAIL": "The Bakery <news@example.com>"}
    assert house.environment.keys() >= NAMES
    serve = [sys.executable, "-m", "sendonce", "serve"]
    service = Process(serve, house.environment, tmp_path / "serve.log", tmp_path)
    try:
        house.wait_until(lambda: _answers(house.url), "the service is ready", 30)
        (tmp_path / "people.csv").write_text("email,name\nann@example.org,Ann\nbob@example.org,Bob\n")
        house.run("subscribers", "import", "people.csv")
        (tmp_path / "letter.md").write_text("---\nsubject: News\n---\nHello, {{ name }}\n")
        mailout = house.json("mailout", "create", "letter.md")["id"]
        house.post("/send-mailout", {"mailout_id": mailout, "auth_token": "the-house-secret"})
        assert house.wait_for(mailout, "sent")["counts"]["sent"] == 2
        assert "From: The Bakery <news@example.com>" in house.letter_to("ann@example.org")
        assert ask(house.unsubscribe_link("ann@example.org"), b"", method="POST").status == 200
        second = house.json("mailout", "create", "letter.md")["id"]
        assert house.json("mailout", "send", second)["counts"]["sent"] == 1
        assert house.accepted().count("ann@example.org") == 1
    finally:
        service.end()
        sandbox.stop()


def _answers(url: str) -> bool:
    try:
        return ask(f"{url}/readyz").status == 200
    except OSError:
        return False
