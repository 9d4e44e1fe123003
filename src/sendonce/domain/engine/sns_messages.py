"""What SNS brings from SES."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SnsMessage:
    """A message whose signature was checked. ``token`` is there in confirmations only."""

    type: str
    message_id: str
    topic_arn: str
    timestamp: datetime
    message: str
    token: str | None = None
    subscribe_url: str | None = None

    @property
    def region(self) -> str:
        return self.topic_arn.split(":")[3]
