"""The options of ``sendonce sender add``: what a sender is, where its letters leave, and what it may do."""

from __future__ import annotations

from typing import Annotated

import typer

Address = Annotated[str, typer.Argument(help="The address that its letters come from.")]
Host = Annotated[str | None, typer.Option(help="Its SMTP host.")]
Region = Annotated[str | None, typer.Option(help="Or its region of Amazon SES.")]
Folder = Annotated[str | None, typer.Option(help="Or a maildir: its letters go nowhere.")]
Port = Annotated[int | None, typer.Option(help="The SMTP host's port; 587 if not given.")]
Security = Annotated[str | None, typer.Option(help="starttls, tls or plain.")]
Username = Annotated[str | None, typer.Option(help="The SMTP account, or an AWS access key id.")]
SecretFrom = Annotated[
    str | None,
    typer.Option(help="Where its password or secret key is: a variable SENDER_… or a file's path."),
]
ConfigurationSet = Annotated[str | None, typer.Option(help="Its configuration set of SES.")]
SecondRegion = Annotated[
    str | None, typer.Option(help="The region of SES that takes over while the first is in trouble.")
]
SecondConfigurationSet = Annotated[
    str | None, typer.Option(help="Its configuration set there, if it has another name.")
]
Name = Annotated[str | None, typer.Option(help="The name beside the address.")]
ReplyTo = Annotated[str | None, typer.Option(help="Where answers go; else to the address.")]
Rate = Annotated[int | None, typer.Option(help="Letters per second, 0 for no limit.")]
RateKey = Annotated[str | None, typer.Option(help="Senders with one key share a rate.")]
Connections = Annotated[int | None, typer.Option(help="Connections of each worker.")]
ImapHost = Annotated[
    str | None, typer.Option(help="The IMAP host of its mailbox, read with its SMTP account.")
]
ImapPort = Annotated[int | None, typer.Option(help="The IMAP host's port; 993 if not given.")]
Transport = Annotated[str | None, typer.Option(help="ses, smtp or maildir; told by the above.")]
SecretEnv = Annotated[str | None, typer.Option(help="The variable with its password or secret key.")]
Tenant = Annotated[str, typer.Option(help="Whose sender it is.")]
Direction = Annotated[
    str | None, typer.Option(help="The direction whose campaigns it writes for; with --daily.")
]
Daily = Annotated[int | None, typer.Option(help="Letters in any 24 hours, for campaigns.")]
PerHour = Annotated[int | None, typer.Option(help="Letters in any hour, for campaigns.")]
WarmUp = Annotated[bool, typer.Option("--warm-up", help="It is new: few letters at first.")]
Ramp = Annotated[str | None, typer.Option(help="Its first days, such as 5,5,8,12.")]
NoDns = Annotated[bool, typer.Option("--no-dns", help="Do not look at its domain now.")]
