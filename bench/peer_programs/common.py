"""What the Python peers share: the letter, the people, and the standard library's way to build a message."""

from __future__ import annotations

import json
import re
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

NAMES = ("Anna", "Борис", "Zoë Müller", "Дмитрий Иванов", "José", "Elena", "O'Neill", "Мария", "Jan", "Ольга")
VARIABLE = re.compile(r"\{\{ *name[^}]*\}\}")


def read_letter(path: str) -> dict[str, str]:
    return dict(json.loads(Path(path).read_text(encoding="utf-8")))


def build(letter: dict[str, str], number: int) -> EmailMessage:
    name = f"{NAMES[number % len(NAMES)]} {number % 1000}"
    message = EmailMessage(policy=SMTP)
    message["From"] = "news@bench.example"
    message["To"] = f'"{name}" <reader{number:07d}@bench.example>'
    message["Subject"] = VARIABLE.sub(name, letter["subject"])
    message["Message-ID"] = f"<{number}@bench.example>"
    message["List-Unsubscribe"] = f"<https://mail.bench.example/unsubscribe?token={number:048d}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(VARIABLE.sub(name, letter["text"]))
    message.add_alternative(VARIABLE.sub(name, letter["html"]), subtype="html")
    return message
