"""An added sender is the environment's settings with its own laid over them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import BadSetting
from sendonce.settings import Settings, load_settings
from sendonce.wiring.mortality import require_death_proof
from sendonce.wiring.senders import in_second_region, keys_of, own_settings, settings_of

OWN = {
    "SMTP_HOST": "own.example.com",
    "SMTP_FROM_EMAIL": "Own <own@example.com>",
    "SMTP_USERNAME": "own",
    "SMTP_PASSWORD": "the environment's",
    "SES_REPLY_TO": "answers@example.com",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIAOWN",
    "AWS_SECRET_ACCESS_KEY": "the environment's key",
    "RATE_LIMIT_PER_SEC": "7",
    "SENDER_NEWS": "correct horse",
}
NEWS = NewSender("news@example.net", "smtp", "smtp.example.net", username="news", secret_from="SENDER_NEWS")


def own(**more: str) -> Settings:
    return load_settings({**OWN, **more}, dotenv=None)


def named(new: NewSender) -> SenderIdentity:
    return SenderIdentity("1", DEFAULT_TENANT, new, datetime(2026, 1, 1, tzinfo=UTC))


def test_a_sender_has_nothing_of_the_environments_own() -> None:
    """Neither its login, nor its name, nor where its answers go."""
    made = settings_of(own(), NEWS).settings
    assert (made.smtp_host, made.smtp_port, made.smtp_security) == ("smtp.example.net", 587, "starttls")
    assert (made.smtp_username, made.smtp_password) == ("news", "correct horse")
    assert (made.sender, made.sender_name, made.ses_reply_to) == ("news@example.net", "", "")
    assert made.rate_limit_per_sec == 7
    open_relay = settings_of(own(), NewSender("news@example.net", "smtp", "smtp.example.net")).settings
    assert (open_relay.smtp_username, open_relay.smtp_password) == ("", "")


def test_an_ses_sender_has_its_own_key_or_the_environments() -> None:
    with_key = NewSender("a@example.net", "ses", "eu-west-1", username="AKIA", secret_from="SENDER_NEWS")
    made = settings_of(own(AWS_SESSION_TOKEN="temporary"), with_key).settings
    assert (made.aws_access_key_id, made.aws_secret_access_key) == ("AKIA", "correct horse")
    assert (made.aws_session_token, made.aws_region) == ("", "eu-west-1")
    without = settings_of(own(), NewSender("a@example.net", "ses", "eu-west-1")).settings
    assert without.aws_access_key_id == "AKIAOWN"


def test_a_letter_that_no_signature_lets_die_needs_a_lock() -> None:
    """An added sender too: without a disk it could never be told whether its letters still leave."""
    require_death_proof(settings_of(own(), NEWS).settings)
    diskless = own(TRANSPORT="ses", DEATH_PROOF="signature")
    require_death_proof(diskless)
    require_death_proof(settings_of(diskless, NewSender("a@example.net", "ses", "eu-west-1")).settings)
    with pytest.raises(BadSetting, match="letters leave by smtp"):
        require_death_proof(settings_of(diskless, NEWS).settings)


def test_another_access_key_is_another_route() -> None:
    """It may be of another account: what the events of one prove says nothing of the other's letters."""
    environment = own(TRANSPORT="ses", SES_CONFIGURATION_SET="events")
    here = own_settings(environment).route
    with_key = NewSender("a@example.net", "ses", "eu-central-1", username="AKIA", secret_from="SENDER_NEWS")
    assert settings_of(environment, with_key).route != here
    assert settings_of(environment, NewSender("a@example.net", "ses", "eu-central-1")).route == here


def test_senders_of_one_host_share_a_rate_unless_they_say_otherwise() -> None:
    assert settings_of(own(), NEWS).rate_key == "smtp/smtp.example.net:587"
    apart = NewSender("a@example.net", "smtp", "smtp.example.net", rate_key="apart")
    assert settings_of(own(), apart).rate_key == "apart"
    assert keys_of(own())(named(apart)).home == "smtp/smtp.example.net:587/a@example.net"


def test_a_second_region_has_its_own_rate_route_and_key() -> None:
    """Quotas and events of SES are per region; the configuration set has the same name unless told."""
    two = NewSender("a@example.net", "ses", "eu-central-1", second_region="eu-west-1")
    environment = own(TRANSPORT="ses", SES_CONFIGURATION_SET="events")
    there = in_second_region(settings_of(environment, two))
    assert there is not None
    assert (there.rate_key, there.route) == ("ses/eu-west-1", "ses/eu-west-1/events")
    assert in_second_region(there) is None
    keys = keys_of(environment)(named(two))
    assert keys == ("ses/eu-central-1/a@example.net", "ses/eu-west-1/a@example.net")
    shared = replace(two, rate_key="ours", second_configuration_set="other")
    there = in_second_region(settings_of(environment, shared))
    assert there is not None
    assert (there.rate_key, there.route) == ("ours/eu-west-1", "ses/eu-west-1/other")


def test_a_second_region_of_the_environment_is_not_an_added_senders() -> None:
    environment = own(TRANSPORT="ses", SES_SECOND_REGION="eu-west-1")
    assert in_second_region(own_settings(environment)) is not None
    assert in_second_region(settings_of(environment, NEWS)) is None
    one = NewSender("a@example.net", "ses", "eu-central-1")
    assert in_second_region(settings_of(environment, one)) is None


def test_a_secret_may_be_in_a_file(tmp_path: Path) -> None:
    """Its last line end is not part of it. What is missing, unreadable or empty is named by its place."""
    file = tmp_path / "secret"
    in_file = NewSender("a@example.net", "smtp", "h.example", username="u", secret_from=str(file))
    for content, told in ((None, "cannot be read"), (b"\xff", "cannot be read"), (b"\n", "is empty")):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(BadSetting, match=told) as refusal:
            settings_of(own(), in_file)
        assert str(file) in str(refusal.value)
    file.write_text("from a file\n")
    assert settings_of(own(), in_file).settings.smtp_password == "from a file"


def test_the_log_masks_the_secrets_of_senders() -> None:
    """Also those in .env; there they are no misspelt settings."""
    assert "correct horse" in own().secrets()


def test_variables_of_senders_in_a_file_are_known(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SENDER_NEWS=from the file\nSENDRE_NEWS=oops\n")
    settings = load_settings({}, dotenv=tmp_path / ".env")
    assert settings.sender_secrets == {"SENDER_NEWS": "from the file"}
    assert settings.unknown_in_dotenv == ("SENDRE_NEWS",)
