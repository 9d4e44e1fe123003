"""What AWS answers when it says no."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from sendonce.sandbox.http_server import Reply


class ServiceRefusal(Exception):
    """The request was not carried out; ``code`` is the name of the exception that an AWS client raises."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def as_json(self) -> Reply:
        """SES v2 speaks rest-json: the name in a header, the words in the body."""
        body = json.dumps({"message": self.message}).encode()
        return Reply(self.status, body, headers=(("x-amzn-ErrorType", self.code),))

    def as_xml(self) -> Reply:
        """SNS speaks the query protocol."""
        body = (
            '<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>'
            f"<Code>{escape(self.code)}</Code><Message>{escape(self.message)}</Message></Error>"
            "<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>"
        )
        return Reply(self.status, body.encode(), content_type="text/xml")

    def as_s3_xml(self) -> Reply:
        """S3 has no envelope around its errors."""
        body = f"<Error><Code>{escape(self.code)}</Code><Message>{escape(self.message)}</Message></Error>"
        return Reply(self.status, body.encode(), content_type="application/xml")


def bad_request(message: str) -> ServiceRefusal:
    return ServiceRefusal(400, "BadRequestException", message)


def rejected(message: str) -> ServiceRefusal:
    return ServiceRefusal(400, "MessageRejected", message)
