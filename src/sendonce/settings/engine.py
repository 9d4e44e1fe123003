"""Settings of the engine: how letters leave, how fast, and through whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sendonce.settings import kinds
from sendonce.settings.kinds import secret, setting, whole


# ruff: noqa: RUF009 - setting() and secret() make dataclass fields
# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class EngineSettings:
    # Sending
    transport: str = setting("sending", kinds.choice("ses", "smtp", "maildir"), "",
        "How letters leave. maildir writes files: nothing leaves the machine.",
        "maildir", otherwise="ses if SES_FROM_EMAIL is set, smtp if SMTP_HOST is, maildir if neither is")
    rate_limit_per_sec: int = setting("sending", whole(0), 6,
        "Letters a second, of all processes that share the database together; 0 sets no limit of ours. "
        "SES console: Account dashboard, Maximum send rate.")
    concurrency: int = setting("sending", whole(1, 1000), 1,
        "Connections to the provider; as many letters can be in doubt after a crash.")
    batch_size: int = setting("sending", whole(1, 10_000), 50,
        "The most letters of a group. At most two groups are claimed at a time.")
    max_tries: int = setting("sending", whole(1, 1000), 6,
        "How often a letter is tried that the provider puts off, before it is dead.")
    retry_base_seconds: float = setting("sending", kinds.seconds(zero=True), 60.0,
        "The wait before the second try; it doubles from try to try.")
    retry_max_seconds: float = setting("sending", kinds.seconds(zero=True), 14400.0,
        "The longest wait between two tries.")
    in_doubt_quiet_seconds: float = setting("sending", kinds.seconds(zero=True), 1800.0,
        "How long after a proven death no evidence must have come before a letter in doubt may count as "
        "not taken.")
    doubt_canary: bool = setting("sending", kinds.flag, True,
        "May one letter go to Amazon's mailbox simulator to see that the event route works, before doubt "
        "is settled by absence.")
    bury_interval_seconds: float = setting("sending", kinds.seconds(zero=False), 10.0,
        "How often a worker looks for dead workers of its machine.")
    death_proof: str = setting("sending", kinds.choice("lock", "signature"), "lock",
        "What proves that a worker is dead: its lock in STATE_DIR, or, for SES where no disk outlives a "
        "process, the signatures of its letters, which expire.")
    worker_name: str = setting("sending", kinds.text, "",
        "The name of this worker in lists and logs.",
        "mailer-1", otherwise="the host name and the process id")
    maildir_path: Path = setting("sending", kinds.path, Path("maildir"),
        "Where the maildir transport puts letters.")
    dns_server: str = setting("sending", kinds.name_server, "",
        "The name server that is asked about senders' domains, for networks where only one is allowed.",
        "192.0.2.53:53", otherwise="the system's")
    sender_dns_checks: bool = setting("sending", kinds.flag, True,
        "Whether the domain of an added sender is looked at when it is added, and then every day: one whose "
        "SPF, DKIM, DMARC or MX is not in order is held until it is. Say false in a network without DNS.")
    failpoint: str = setting("sending", kinds.text, "",
        "For tests only: the point in the code where the process kills itself.", "settle.before")
    # AWS
    aws_region: str = setting("AWS", kinds.region, "",
        "The region of your SES identity. SES console: top right corner.",
        "eu-central-1", fallback="AWS_DEFAULT_REGION")
    aws_default_region: str = setting("AWS", kinds.region, "",
        "Taken where AWS_REGION is not set.", "eu-central-1")
    aws_access_key_id: str = secret("AWS",
        "IAM console: Users, Security credentials. Leave empty on a machine with a role.")
    aws_secret_access_key: str = secret("AWS", "Shown once, when the access key is made.")
    aws_session_token: str = secret("AWS", "Comes with temporary keys: aws sts assume-role, aws sso login.")
    aws_profile: str = setting("AWS", kinds.text, "",
        "A profile of ~/.aws/config to take the credentials from: aws configure list-profiles.", "mailer")
    aws_endpoint_url: str = setting("AWS", kinds.url, "",
        "A stand-in for all of AWS: the address of an emulator.", "http://127.0.0.1:4566")
    aws_endpoint_url_sesv2: str = setting("AWS", kinds.url, "",
        "A stand-in for SES: the sandbox prints its address.",
        "http://127.0.0.1:4566", fallback="AWS_ENDPOINT_URL")
    aws_endpoint_url_sns: str = setting("AWS", kinds.url, "",
        "A stand-in for SNS: the sandbox prints its address.",
        "http://127.0.0.1:4566", fallback="AWS_ENDPOINT_URL")
    aws_endpoint_url_s3: str = setting("AWS", kinds.url, "",
        "A stand-in for S3, or a store that speaks its language.",
        "http://127.0.0.1:4566", fallback="AWS_ENDPOINT_URL")
    ses_from_email: str = setting("AWS", kinds.mailbox, "",
        "The sender, with a name or without. An address or domain that is verified in SES console: "
        "Identities.", "The Bakery <news@example.com>")
    ses_from_name: str = setting("AWS", kinds.text, "",
        "The sender's name, whichever way letters leave; a letter may have another in its front matter.",
        "The Bakery", otherwise="the name in SES_FROM_EMAIL or SMTP_FROM_EMAIL")
    ses_reply_to: str = setting("AWS", kinds.email, "",
        "Where answers go; empty: to the sender. Any mailbox you read.", "hello@example.com")
    ses_configuration_set: str = setting("AWS", kinds.text, "",
        "The configuration set that publishes events to SNS. SES console: Configuration sets.", "sendonce")
    ses_second_region: str = setting("AWS", kinds.region, "",
        "Where the letters of SES_FROM_EMAIL leave while SES is in trouble in AWS_REGION; empty: they wait. "
        "The identity, the configuration set, its events and production access are needed there, too.",
        "eu-west-1")
    ses_second_configuration_set: str = setting("AWS", kinds.text, "",
        "The configuration set there.", "sendonce", otherwise="the name in SES_CONFIGURATION_SET")
    ses_second_endpoint_url: str = setting("AWS", kinds.url, "",
        "A stand-in for SES in the second region, for whoever set AWS_ENDPOINT_URL_SESV2.",
        "http://127.0.0.1:4567")
    ses_fail_back_seconds: float = setting("AWS", kinds.seconds(zero=False), 3600.0,
        "How long a sender stays in its second region before one letter is tried in its own again. The time "
        "doubles from try to try, up to a day.")
    ses_suppression_sync: str = setting("AWS", kinds.choice("off", "global", "tenant"), "off",
        "Keep our suppressions and the suppression lists of the SES accounts in step, both ways. Their "
        "addresses are suppressed for everybody (global) or for the default tenant (tenant) here.")
    ses_account_shared: bool = setting("AWS", kinds.flag, False,
        "Whether other programs, or other databases of sendonce, send from this account and region. If not, "
        "a worker compares Amazon's count of the last 24 hours with the ledger's when it starts.")
    ses_timeout_seconds: float = setting("AWS", kinds.seconds(zero=False), 10.0,
        "How long SES may take to answer before a letter is in doubt.")
    ses_signature_window_seconds: float = setting("AWS", kinds.seconds(zero=False), 1200.0,
        "After this time AWS is sure to refuse a request signed earlier; shorter only against the "
        "sandbox.")
    sns_allowed_topic_arns: tuple[str, ...] = setting("AWS", kinds.several(kinds.topic_arn), (),
        "The topics whose events are believed; empty: /ses-events refuses everything. SNS console: "
        "Topics.", "arn:aws:sns:eu-central-1:123456789012:ses-events")
    ses_events_queue_url: str = setting("AWS", kinds.url, "",
        "An SQS queue that is subscribed to the topic; workers fetch the events from it, and no public "
        "address is needed. SQS console: the queue's page.",
        "https://sqs.eu-central-1.amazonaws.com/123456789012/ses-events")
    sns_signing_cert_file: Path | None = setting("AWS", kinds.path, None,
        "A certificate to check SNS signatures with instead of Amazon's; the sandbox writes one.",
        "sandbox/sns.pem")
    # SMTP
    smtp_host: str = setting("SMTP", kinds.host, "",
        "Your mail provider's outgoing server, from its help pages.", "smtp.example.com")
    smtp_port: int = setting("SMTP", whole(1, 65535), 587,
        "Its port: 587 with STARTTLS, 465 with TLS from the start.")
    smtp_security: str = setting("SMTP", kinds.choice("starttls", "tls", "plain"), "",
        "How the connection is protected.",
        "starttls", otherwise="tls on port 465, plain on a loopback host, else starttls")
    smtp_username: str = setting("SMTP", kinds.text, "",
        "The account; often the whole address. From your mail provider.", "news@example.com")
    smtp_password: str = secret("SMTP",
        "Its password, or the application password if the account has two-step sign-in. From your mail "
        "provider.")
    smtp_oauth_token: str = secret("SMTP",
        "An OAuth access token for XOAUTH2, instead of a password. From your mail provider.")
    smtp_from_email: str = setting("SMTP", kinds.mailbox, "",
        "The sender, with a name or without. An address this account may send from.",
        "The Bakery <news@example.com>")
    smtp_ca_file: Path | None = setting("SMTP", kinds.path, None,
        "Certificates to trust instead of the system's, for a mail server of your own; IMAP too.",
        "/etc/ssl/our-ca.pem")
    smtp_messages_per_connection: int = setting("SMTP", whole(1), 100,
        "After so many letters a new connection is made; some servers set a limit.")
    # IMAP
    imap_host: str = setting("IMAP", kinds.host, "",
        "The IMAP server of the mailbox that letters are sent from: bounces, replies and wishes to "
        "unsubscribe are read there. Empty: no mailbox is read. From your mail provider.",
        "imap.example.com")
    imap_port: int = setting("IMAP", whole(1, 65535), 993,
        "Its port: 993 with TLS from the start, 143 with STARTTLS.")
    imap_security: str = setting("IMAP", kinds.choice("starttls", "tls", "plain"), "",
        "How the connection is protected.",
        "tls", otherwise="tls on port 993, plain on a loopback host, else starttls")
    imap_username: str = setting("IMAP", kinds.text, "",
        "The account; often the whole address.", "news@example.com", fallback="SMTP_USERNAME")
    imap_password: str = secret("IMAP",
        "Its password, or the application password if the account has two-step sign-in.",
        fallback="SMTP_PASSWORD")
    imap_folders: tuple[str, ...] = setting("IMAP", kinds.several(kinds.text), ("INBOX",),
        "The folders to read, as the server calls them. Add the spam folder if replies end up there.",
        "INBOX,Junk")
    imap_read_seconds: float = setting("IMAP", kinds.seconds(zero=False), 60.0,
        "How often a worker or a scheduler reads the mailbox.")
    imap_server_files_sent: bool = setting("IMAP", kinds.flag, False,
        "Whether the server itself puts a copy of every letter that it takes over SMTP into its folder of "
        "sent letters, as Gmail does: then a letter in doubt is looked for there. Say true only if it does: "
        "a letter that is not there may be sent again.")
    # fmt: on
