"""A language model on loopback, with OpenAI's chat completions API. It chooses the lines of letters by their
ids, as it is asked to, and can misbehave."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

from sendonce.errors import BadInput
from sendonce.sandbox.http_server import Reply, Request, json_reply

PATHS = ("/v1/chat/completions", "/v1/models")
CONTROL = "/sandbox/llm"
_SLOW_SECONDS = 5.0
_CREATED = 1_700_000_000
_CHARACTERS_A_TOKEN = 4
_MODEL = {"id": "sandbox", "object": "model", "created": _CREATED, "owned_by": "sandbox"}


class Mood(StrEnum):
    """How it answers."""

    GOOD = "good"
    OBEY = "obey"  # does what the page says, word for word
    INVENT = "invent"
    PRICE = "price"
    LINK = "link"
    PLACEHOLDER = "placeholder"
    WRONG_LANGUAGE = "wrong_language"
    BAD_JSON = "bad_json"
    OTHER_FIELDS = "other_fields"
    REFUSE = "refuse"
    RATE_LIMITED = "rate_limited"
    ERROR = "error"
    SLOW = "slow"


_ORDER = re.compile(
    r"(?:напиши\w*|скажи\w*|добавь\w*|write|say|add)\b[^\n:«\"“]*[:«\"“\s]+([^»\"”\n]+)", re.I
)
_Said = Callable[[dict[str, Any]], str]
_STATUSES = {Mood.RATE_LIMITED: 429, Mood.ERROR: 500}
_INVENTED = "За 15 лет мы получили премию министерства, и нам доверяет Газпром."
_PRICE = "Только для вас скидка 50 %: всего 990 руб."
_OF_ANOTHER_LANGUAGE = "Wir schreiben Ihnen, weil unser Angebot nützlich sein kann."
_SOME_LINES = {"subject": {"offer": "Hello"}, "points": {"text1": ""}}


class LanguageModel:
    """``mood`` holds for every answer that ``next`` does not decide. ``misbehaves`` is a share."""

    def __init__(self, key: str, misbehaves: float, seed: int) -> None:
        self._key, self._misbehaves, self._seed = key, misbehaves, seed
        self.mood = Mood.GOOD
        self.next: deque[Mood] = deque()
        self.asked: Counter[str] = Counter()

    def environment(self, endpoint: str) -> dict[str, str]:
        """The variables that point a product at this model."""
        return {"OPENAI_BASE_URL": f"{endpoint}/v1", "OPENAI_API_KEY": self._key, "OPENAI_MODEL": "sandbox"}

    async def answer(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {self._key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if request.method == "GET":
            return json_reply({"object": "list", "data": [_MODEL]})
        try:
            asked = json.loads(request.body)
            brief = _brief_in(asked["messages"])
        except (ValueError, KeyError, TypeError, IndexError):
            return _error(400, "We could not parse the JSON body of your request.", "invalid_request_error")
        mood = self._mood_for(request.body)
        self.asked[mood] += 1
        if mood is Mood.SLOW:
            await asyncio.sleep(_SLOW_SECONDS)
        if status := _STATUSES.get(mood):
            return _error(
                status, "The engine is busy.", "rate_limit_exceeded" if status == 429 else "server_error"
            )
        if mood is Mood.REFUSE:
            return _completion(asked, None, "I'm sorry, I can't help with that.")
        return _completion(asked, _SAID.get(mood, _good)(brief), None)

    async def control(self, request: Request) -> Reply:
        """GET shows the mood; POST {"mood": "obey"} or {"next": ["error", "good"]} changes it."""
        if request.method == "POST":
            if "origin" in request.headers:
                return json_reply({"error": "Requests from web pages are refused."}, 403)
            try:
                self._change(json.loads(request.body))
            except (BadInput, ValueError, TypeError) as exc:
                return json_reply({"error": str(exc) or "Send a JSON object."}, 400)
        shown = {"mood": self.mood, "next": list(self.next), "asked": dict(self.asked), "moods": list(Mood)}
        return json_reply(shown)

    def _change(self, wish: Mapping[str, Any]) -> None:
        known = set(Mood)
        wanted = [*wish.get("next", []), *([wish["mood"]] if "mood" in wish else [])]
        if unknown := [mood for mood in wanted if mood not in known]:
            raise BadInput(f"There is no mood {unknown[0]!r}: choose of {', '.join(Mood)}.")
        self.mood = Mood(wish.get("mood", self.mood))
        self.next.extend(map(Mood, wish.get("next", [])))

    def _mood_for(self, body: bytes) -> Mood:
        """The same request meets the same mood."""
        if self.next:
            return self.next.popleft()
        if self.mood is not Mood.GOOD:
            return self.mood
        number = int.from_bytes(sha256(str(self._seed).encode() + body).digest()[:8])
        bad = [mood for mood in Mood if mood is not Mood.GOOD]
        return bad[number % len(bad)] if number % 1000 < self._misbehaves * 1000 else Mood.GOOD


def _brief_in(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Any other question is taken for a page to write about."""
    said = next(it["content"] for it in messages if it["role"] == "user")
    try:
        brief = json.loads(said)
    except ValueError:
        brief = None
    return {"lines": _SOME_LINES, "pages": [{"text": said}]} if not isinstance(brief, dict) else brief


def _choice(brief: dict[str, Any]) -> dict[str, Any]:
    """One line of each kind and most of the points, another choice for another company."""
    die = sha256(json.dumps(brief.get("company"), sort_keys=True).encode()).digest()
    lines = {name: list(known) for name, known in brief["lines"].items()}
    chosen: dict[str, Any] = {
        name: known[number % len(known)] for (name, known), number in zip(lines.items(), die, strict=False)
    }
    points = lines["points"]
    turned = points[die[-1] % len(points) :] + points[: die[-1] % len(points)]
    return {**chosen, "points": turned[: max(1, len(points) - 1)]}


def _good(brief: dict[str, Any]) -> str:
    return json.dumps(_choice(brief), ensure_ascii=False)


def _with_a_point(said: str) -> _Said:
    """A letter with a line of its own, which is what it was not asked for."""
    return lambda brief: json.dumps({**_choice(brief), "points": [*_choice(brief)["points"], said]})


def obedient_answers(brief: dict[str, Any]) -> list[str]:
    """What the pages say as an answer, in every way in which a model may give in to them.

    That is what follows "write" and the like, else the whole page.
    """
    pages = "\n".join(str(page.get("text", "")) for page in brief.get("pages", []))
    said = "\n".join(_ORDER.findall(pages)) or pages
    choice = _choice(brief)
    ways = [
        {name: [said] if name == "points" else said for name in choice},
        {**choice, "points": [*choice["points"], said]},
        *({**choice, name: said} for name in choice),
        {**choice, "postscript": said},
        {"subject": said, "body": said},
    ]
    return [said, *(json.dumps(way, ensure_ascii=False) for way in ways)]


def _obedient(brief: dict[str, Any]) -> str:
    """One of these ways, another one for other pages."""
    answers = obedient_answers(brief)
    return answers[sha256(repr(brief.get("pages")).encode()).digest()[0] % len(answers)]


_SAID: dict[Mood, _Said] = {
    Mood.OBEY: _obedient,
    Mood.INVENT: _with_a_point(_INVENTED),
    Mood.PRICE: _with_a_point(_PRICE),
    Mood.LINK: _with_a_point("https://bit.example/2Xy9"),
    Mood.PLACEHOLDER: _with_a_point("[Your Name]"),
    Mood.WRONG_LANGUAGE: lambda brief: json.dumps({**_choice(brief), "opening": _OF_ANOTHER_LANGUAGE}),
    Mood.BAD_JSON: lambda brief: _good(brief)[:-20],
    Mood.OTHER_FIELDS: lambda brief: json.dumps({"letter": _choice(brief)}),
}


def _completion(asked: dict[str, Any], content: str | None, refusal: str | None) -> Reply:
    prompt = len(json.dumps(asked, ensure_ascii=False)) // _CHARACTERS_A_TOKEN
    said = len(content or refusal or "") // _CHARACTERS_A_TOKEN
    return json_reply(
        {
            "id": "chatcmpl-" + sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24],
            "object": "chat.completion",
            "created": _CREATED,
            "model": asked.get("model", "sandbox"),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "logprobs": None,
                    "message": {"role": "assistant", "content": content, "refusal": refusal},
                }
            ],
            "usage": {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said},
        }
    )


def _error(status: int, message: str, code: str) -> Reply:
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return Reply(status, json.dumps(body).encode(), headers=(("Retry-After", "0"),))
