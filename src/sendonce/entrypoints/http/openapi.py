"""The service in OpenAPI 3.1, served at /openapi.json."""

from __future__ import annotations

from typing import Any

from sendonce import __version__

_JSON = "application/json"
_URLENCODED = "application/x-www-form-urlencoded"
_SIGN_UP_ERRORS = (400, 404, 408, 413, 429, 503)


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _answers(good: dict[str, Any], *errors: int) -> dict[str, Any]:
    """The good answer, and the errors that are to be expected."""
    return {"200": good} | {str(status): {"$ref": f"#/components/responses/{status}"} for status in errors}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {_JSON: {"schema": schema}}}


def _page(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/html": {"schema": {"type": "string"}}}}


_SECRET: list[dict[str, list[str]]] = [{"secret": []}]
_TOKEN = {
    "name": "token",
    "in": "query",
    "required": True,
    "description": "The signed token of the link in a letter.",
    "schema": {"type": "string"},
}
_LANGUAGE = {
    "name": "lang",
    "in": "query",
    "required": False,
    "description": "The language of the page before, ru or en; anything else is ignored.",
    "schema": {"type": "string"},
}
_BAD_LINK = {
    "404": _page("A bad link, whatever is wrong with it."),
    "429": _page("The same page, for a peer that shows bad links too often."),
    "503": _page("The database does not answer."),
}
_ONE_CLICK = {
    "description": "RFC 8058 has One-Click here; any other body, or none, means the same.",
    "content": {
        kind: {
            "schema": {
                "type": "object",
                "properties": {"List-Unsubscribe": {"type": "string", "examples": ["One-Click"]}},
            }
        }
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data")
    },
}

_SES_EVENTS = {
    "post": {
        "operationId": "takeSesEvent",
        "summary": "An SNS message with an SES event, or about the subscription",
        "description": "The signature is checked; topics that are not in SNS_ALLOWED_TOPIC_ARNS are refused. "
        "503 asks SNS to bring the message again.",
        "requestBody": {
            "required": True,
            "content": {"text/plain": {"schema": _text("The SNS envelope: a JSON object.")}},
        },
        "responses": _answers(
            _json("The message was seen to.", _ref("EventAnswer")), 400, 403, 408, 413, 503
        ),
    }
}

_UNSUBSCRIBE = {
    "get": {
        "operationId": "openUnsubscribeLink",
        "summary": "Unsubscribe, and show a page with an undo button",
        "description": "With UNSUBSCRIBE_CONFIRM=true the page asks first. HEAD changes nothing.",
        "parameters": [_TOKEN, _LANGUAGE],
        "responses": {"200": _page("Done, or the question.")} | _BAD_LINK,
    },
    "post": {
        "operationId": "unsubscribeInOneClick",
        "summary": "One-click unsubscribe of RFC 8058; idempotent",
        "parameters": [_TOKEN, _LANGUAGE],
        "requestBody": _ONE_CLICK,
        "responses": _answers(_page("Unsubscribed."), 408, 413) | _BAD_LINK,
    },
}

_LETTER = {
    "get": {
        "operationId": "viewLetter",
        "summary": "A letter as its reader got it",
        "description": "Only with VIEW_IN_BROWSER=true; 404 otherwise, and for people who were erased.",
        "parameters": [_TOKEN],
        "responses": {"200": _page("The letter.")} | _BAD_LINK,
    }
}

_UNDO = {
    "post": {
        "operationId": "undoUnsubscribe",
        "summary": "Take an unsubscription back, by the letter that made it and within an hour",
        "parameters": [_TOKEN, _LANGUAGE],
        "requestBody": _ONE_CLICK,
        "responses": _answers(_page("Subscribed again, or why not."), 408, 413) | _BAD_LINK,
    }
}

_SUBSCRIBE = {
    "post": {
        "operationId": "signUp",
        "summary": "Ask for letters; a letter of confirmation goes out",
        "description": "Only with SIGN_UP=true, 404 otherwise. The answer is the same for every address. "
        "A form of a web site may be posted here as it is; it is answered with a page.",
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": _ref("SignUp")} for kind in (_JSON, _URLENCODED)},
        },
        "responses": {"202": _json("Taken.", _ref("Accepted"))}
        | {str(status): {"$ref": f"#/components/responses/{status}"} for status in _SIGN_UP_ERRORS},
    }
}

_CONFIRM = {
    "get": {
        "operationId": "openConfirmationLink",
        "summary": "Ask whether letters are wanted; changes nothing",
        "parameters": [_TOKEN, _LANGUAGE],
        "responses": {"200": _page("The question.")} | _BAD_LINK,
    },
    "post": {
        "operationId": "confirmSignUp",
        "summary": "Confirm a sign-up; idempotent",
        "parameters": [_TOKEN, _LANGUAGE],
        "responses": _answers(_page("Subscribed, or why not."), 408, 413) | _BAD_LINK,
    },
}

_SEND_MAILOUT = {
    "post": {
        "operationId": "sendMailout",
        "summary": "Start a mailout; it is sent in the background",
        "description": "The secret stands in the body, in Authorization: Bearer or in X-Mailout-Token. "
        "A body of more than 4 KB is read only with the secret in a header.",
        "security": [{}, {"secret": []}, {"header": []}],
        "requestBody": {"required": True, "content": {_JSON: {"schema": _ref("SendMailout")}}},
        "responses": _answers(
            _json("It is sending, or the dry run went well.", _ref("Started")),
            400,
            401,
            404,
            408,
            409,
            413,
            429,
            503,
        ),
    }
}

_MAILOUT = {
    "get": {
        "operationId": "getMailout",
        "summary": "A mailout and its balanced counts",
        "security": _SECRET,
        "parameters": [
            {"name": "mailout_id", "in": "path", "required": True, "schema": {"type": "string"}},
        ],
        "responses": _answers(_json("The mailout.", _ref("Mailout")), 401, 404, 429, 503),
    }
}


def _tick(name: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": "Do due work for a bounded time",
        "description": "For a serverless cron. The secret is EXECUTOR_SHARED_SECRET or CRON_SECRET.",
        "security": _SECRET,
        "parameters": [
            {
                "name": "seconds",
                "in": "query",
                "description": "How long to work.",
                "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 300, "default": 10},
            }
        ],
        "responses": _answers(
            _json("What was done.", {"type": "object"}), 400, 401, 408, 409, 413, 429, 501, 503
        ),
    }


def _health(name: str, summary: str, *errors: int) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _json("Yes.", _ref("Health"))}
    for status in errors:
        responses[str(status)] = _json("No.", _ref("Health"))
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


_METRICS = {
    "get": {
        "operationId": "getMetrics",
        "summary": "Metrics for Prometheus",
        "security": _SECRET,
        "responses": _answers(
            {"description": "The page.", "content": {"text/plain": {"schema": {"type": "string"}}}}, 401, 429
        ),
    }
}

_ASSET = {
    "get": {
        "operationId": "getPicture",
        "summary": "An image of a letter",
        "parameters": [
            {
                "name": "sha256",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            },
        ],
        "responses": _answers({"description": "The image, for ever the same."}, 404, 416, 503)
        | {
            "206": {"description": "The part that Range asks for."},
            "304": {"description": "If-None-Match names what is here."},
        },
    }
}

_NOTION_WEBHOOK = {
    "post": {
        "operationId": "postNotionEvent",
        "summary": "Webhook of a Notion integration; a page whose status says so is sent",
        "description": "Signed by Notion in X-Notion-Signature.",
        "requestBody": {"required": True, "content": {_JSON: {"schema": {"type": "object"}}}},
        "responses": _answers(
            _json("Taken.", _object(["status"], status=_text("What was done."))), 400, 401, 408, 413, 503
        ),
    }
}

_OPENAPI = {
    "get": {
        "operationId": "getOpenapi",
        "summary": "This document",
        "responses": {"200": _json("The document.", {"type": "object"})},
    }
}

_COUNT = {"type": "integer", "minimum": 0}
_MOMENT = {"type": ["string", "null"], "format": "date-time"}
_STATES = ("scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt")
_MARKS = ("delivered", "bounced", "complained")

_SCHEMAS = {
    "Error": _object(["error"], error=_text("What is wrong, and what to do.")),
    "Health": _object(["status"], status={"type": "string", "enum": ["ok", "unavailable"]}),
    "EventAnswer": _object(
        ["verdict"],
        verdict=_text(
            "What became of the message.",
            enum=[
                *("applied", "duplicate_event", "duplicate_send", "unknown", "quarantined"),
                *("ignored", "unreadable", "confirmed", "noted"),
            ],
        ),
    ),
    "SignUp": _object(
        ["email"],
        email=_text("One bare address.", minLength=3, maxLength=254),
        name=_text("The person's name, if they gave one.", maxLength=200),
    ),
    "Accepted": _object(["status"], status={"type": "string", "enum": ["accepted"]}),
    "SendMailout": _object(
        ["mailout_id"],
        mailout_id=_text(
            "The id that sendonce mailout create printed, or a page of Notion.", minLength=1, maxLength=100
        ),
        auth_token=_text("EXECUTOR_SHARED_SECRET, if it is in no header."),
        dry_run={"type": "boolean", "description": "Make all checks and change nothing.", "default": False},
        is_test={"type": "boolean", "description": "Send to TEST_EMAILS only.", "default": False},
    ),
    "Started": _object(
        ["status", "mailout_id"],
        status={"type": "string", "enum": ["sending", "scheduled", "dry_run", "ready", "sent", "failed"]},
        already={"type": "boolean", "description": "A button in Notion was pressed again."},
        mailout_id=_text("The mailout."),
        name=_text("Its name."),
        planned={**_COUNT, "description": "How many people it is for, as of now."},
        send_at=_text("When a scheduled mailout starts, in UTC."),
    ),
    "Mailout": _object(
        ["id", "status", "counts", "name", "reason", "paused"],
        id=_text("The mailout."),
        status={"type": "string", "enum": ["draft", "ready", "sending", "sent", "failed"]},
        counts=_ref("Counts"),
        name=_text("Its name."),
        reason={"type": ["string", "null"], "description": "Why it stopped, if it did."},
        paused={"type": "boolean"},
        cancelled={"type": "boolean"},
        phase={"type": ["string", "null"], "enum": ["fetching", "planning", "running", "over", None]},
        rejected={**_COUNT, "description": "Letters that the provider took and threw away afterwards."},
        duplicates={**_COUNT, "description": "Letters of which a second copy is known to have left: 0."},
        created_at=_MOMENT,
        started_at=_MOMENT,
        sent_at=_MOMENT,
        standstill={"oneOf": [_ref("Standstill"), {"type": "null"}]},
        rate={"type": ["number", "null"], "description": "Letters per second, while some are sent."},
        estimated_end={**_MOMENT, "description": "When it will be done at this rate."},
        workers={**_COUNT, "description": "How many workers are at work."},
    ),
    "Standstill": {
        **_object(
            ["cause", "detail", "fix", "next_try_at"],
            cause=_text("held, paused, no_worker, retry, …: docs/reference/http.md lists them."),
            detail=_text("What happened."),
            fix=_text("What to do about it; empty where waiting is enough."),
            next_try_at=_MOMENT,
        ),
        "description": "Why no letter leaves at the moment; null while letters leave, and before and after.",
    },
    "Counts": {
        **_object(
            ["planned", *_STATES, *_MARKS],
            planned=_COUNT,
            **dict.fromkeys((*_STATES, *_MARKS), _COUNT),
        ),
        "description": f"planned is the sum of {', '.join(_STATES)}; the others are marks on jobs.",
    },
}

_ERRORS = {
    400: "The request is malformed, or the mailout cannot be sent as it is.",
    401: "No right secret was shown. The same for every cause.",
    403: "Not signed by SNS, or not from an allowed topic.",
    404: "There is no such mailout.",
    408: "The request took too long to arrive.",
    409: "Already sending or sent, or a rule forbids it.",
    413: "The body is longer than 256 KB.",
    416: "Range asks for a part that is not there.",
    429: "Too many failed attempts from this address.",
    501: "This service was started without a part that does due work.",
    503: "The database does not answer. Try again later.",
}

OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "sendonce",
        "version": __version__,
        "summary": "Sends each letter to each recipient at most once, and can prove it.",
        "description": "Any request may also get 400, 408, 414, 431, 501 or 505, after which the connection "
        "ends: it is not good HTTP, takes too long, or has more than 64 KB or 128 fields of head.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "paths": {
        "/ses-events": _SES_EVENTS,
        "/unsubscribe": _UNSUBSCRIBE,
        "/unsubscribe/undo": _UNDO,
        "/subscribe": _SUBSCRIBE,
        "/confirm": _CONFIRM,
        "/send-mailout": _SEND_MAILOUT,
        "/mailouts/{mailout_id}": _MAILOUT,
        "/assets/{sha256}": _ASSET,
        "/letter": _LETTER,
        "/webhooks/notion": _NOTION_WEBHOOK,
        "/tick": {"get": _tick("tick"), "post": _tick("tickByPost")},
        "/healthz": _health("getHealth", "Whether the process is alive"),
        "/readyz": _health("getReadiness", "Whether the database answers and has the right schema", 503),
        "/metrics": _METRICS,
        "/openapi.json": _OPENAPI,
    },
    "components": {
        "securitySchemes": {
            "secret": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-Mailout-Token"},
        },
        "schemas": _SCHEMAS,
        "responses": {
            str(status): _json(description, _ref("Error")) for status, description in _ERRORS.items()
        },
    },
}
