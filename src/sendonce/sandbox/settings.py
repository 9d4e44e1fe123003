"""How the sandbox is set up, and where it can be reached once it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sendonce.errors import BadInput


def _option(default: Any, help_text: str) -> Any:
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True)
class SandboxSettings:
    """Each field is also a flag of ``python -m sendonce.sandbox``; ``directory`` is ``--dir``."""

    directory: Path
    port: int = _option(4580, "port on 127.0.0.1; 0 takes a free one")
    region: str = _option("us-east-1", "the AWS region that this world plays")
    second_region: str = _option("", "another region that it plays, at an address of its own; empty: none")
    second_port: int = _option(0, "port of the second region's SES; 0 takes a free one")
    account_id: str = _option("123456789012", "the AWS account number in ARNs")
    access_key_id: str = _option("SANDBOXACCESSKEY", "the access key that signatures must name")
    secret_access_key: str = _option("sandbox-secret", "the key of signatures; empty: they are not computed")
    signature_window: float = _option(300.0, "seconds that a signature's date may be off")
    clock_offset: float = _option(0.0, "seconds by which this world's clock is ahead of the machine's")
    max_rate: float = _option(14.0, "recipients accepted in any one second")
    daily_quota: float = _option(50_000.0, "recipients accepted in 24 hours; -1: no limit")
    max_message_bytes: int = _option(41_943_040, "the largest letter: SES takes 40 MB")
    from_email: str = _option("news@example.com", "the sender named in the environment that is printed")
    identities: tuple[str, ...] = _option(("example.com",), "verified addresses and domains, by comma")
    configuration_sets: tuple[str, ...] = _option(("sandbox",), "configuration sets that exist, by comma")
    production_access: bool = _option(True, "without it only verified recipients are written to")
    sending_enabled: bool = _option(True, "without it every letter meets SendingPausedException")
    keep_messages: int = _option(1000, "keep the text of that many letters in messages/; 0: none")
    topic: str = _option("ses-events", "the name of the SNS topic")
    signature_version: int = _option(2, "SNS signatures: 1 is SHA-1, 2 is SHA-256")
    events_url: str = _option("", "where notifications are posted; empty: nowhere, until somebody subscribes")
    subscribe: bool = _option(True, "begin with a SubscriptionConfirmation")
    confirm_required: bool = _option(True, "deliver nothing before the subscription is confirmed")
    event_connections: int = _option(8, "connections that carry notifications")
    event_attempts: int = _option(1000, "a notification is given up after so many tries without a 2xx")
    seed: int | None = _option(None, "the seed of all dice; empty: the directory's, or a new one")
    bounce_share: float = _option(0.0, "share of recipients that bounce")
    complaint_share: float = _option(0.0, "share of recipients that complain")
    disliked: tuple[str, ...] = _option((), "senders of whose letters every recipient complains, by comma")
    delay_share: float = _option(0.0, "share of recipients that are delivered after a delay")
    reject_share: float = _option(0.0, "share of recipients whose letter SES rejects after acceptance")
    notion_token: str = _option("ntn_sandbox", "the token of Notion's integration")
    notion_requests: int = _option(180, "requests that Notion takes in a window")
    notion_window: float = _option(60.0, "seconds of such a window")
    notion_file_seconds: float = _option(3600.0, "seconds that a link to a file in Notion lives")
    notion_tables: bool = _option(True, "begin with the tables «Письма» and «Ошибки» and a letter in Notion")
    llm_key: str = _option("sk-sandbox", "the key of the language model")
    llm_misbehaves: float = _option(0.0, "share of requests that the language model answers badly")
    companies: int = _option(300, "how many companies have a site on the web that it plays")
    mailbox: bool = _option(False, "play a mail provider too: SMTP, and IMAP for what comes back")
    yandex_api_key: str = _option("AQVNsandbox", "the API key of Yandex Cloud")
    yandex_folder_id: str = _option("b1gsandbox0000000000", "the folder of Yandex Cloud")
    yandex_pending_seconds: float = _option(
        2.0, "seconds until a search is answered; Yandex takes 300 and more"
    )
    yandex_rate: int = _option(10, "searches that Yandex takes in a second, and polls")
    yandex_token_seconds: float = _option(43_200.0, "seconds that an IAM token lives")
    faults: Mapping[str, Any] = field(
        default_factory=dict, metadata={"help": "JSON, as POST /sandbox/faults takes it"}
    )

    def __post_init__(self) -> None:
        if self.signature_version not in (1, 2):
            raise BadInput(f"signature_version is {self.signature_version!r}: SNS knows 1 and 2.")
        if self.max_rate <= 0:
            raise BadInput(f"max_rate is {self.max_rate!r}: give a number of recipients above 0.")
        for name in ("bounce_share", "complaint_share", "delay_share", "reject_share", "llm_misbehaves"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(f"{name} is {getattr(self, name)!r}: give a share from 0 to 1.")
        if self.events_url:
            loopback_target(self.events_url)

    @property
    def topic_arn(self) -> str:
        return f"arn:aws:sns:{self.region}:{self.account_id}:{self.topic}"

    def is_verified(self, address: str) -> bool:
        """An identity may be an address or a domain; a domain speaks for its subdomains too."""
        address = address.lower()
        verified = {identity.lower() for identity in self.identities}
        labels = address.rpartition("@")[2].split(".")
        parents = {".".join(labels[depth:]) for depth in range(len(labels))}
        return address in verified or not verified.isdisjoint(parents)


@dataclass(frozen=True)
class WebhookTarget:
    host: str
    port: int
    path: str


def loopback_target(url: str) -> WebhookTarget:
    """The parts of a webhook address. The sandbox talks to this machine only."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback or parts.scheme != "http":
        raise BadInput(
            f"The address for events is {url!r}. The sandbox posts to this machine only: "
            "give one such as http://127.0.0.1:3000/ses-events."
        )
    return WebhookTarget(host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


@dataclass(frozen=True)
class SandboxAddresses:
    """Where a running sandbox is, and what a product must know to use it."""

    endpoint: str
    directory: Path
    region: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    from_email: str
    configuration_set: str
    topic_arn: str
    seed: int
    others: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def control(self) -> str:
        return f"{self.endpoint}/sandbox/"

    @property
    def accepted_log(self) -> Path:
        return self.directory / "accepted.jsonl"

    @property
    def certificate_file(self) -> Path:
        return self.directory / "sns-signing.pem"

    def environment(self) -> dict[str, str]:
        """The variables that point a product at this sandbox instead of the world outside."""
        return {
            "AWS_ENDPOINT_URL_SESV2": self.endpoint,
            "AWS_ENDPOINT_URL_SNS": self.endpoint,
            "AWS_ENDPOINT_URL_S3": f"{self.endpoint}/s3",
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "SES_FROM_EMAIL": self.from_email,
            "SES_CONFIGURATION_SET": self.configuration_set,
            "SNS_ALLOWED_TOPIC_ARNS": self.topic_arn,
            "SNS_SIGNING_CERT_FILE": str(self.certificate_file),
            **self.others,
        }

    def summary(self) -> dict[str, Any]:
        return {
            "endpoint": self.endpoint,
            "control": self.control,
            "directory": str(self.directory),
            "accepted_log": str(self.accepted_log),
            "certificate_file": str(self.certificate_file),
            "topic_arn": self.topic_arn,
            "seed": self.seed,
            "environment": self.environment(),
        }
