"""A language model on loopback, with OpenAI's chat completions API. It writes letters, and can misbehave."""

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
_STATUSES = {Mood.RATE_LIMITED: 429, Mood.ERROR: 500}
_ASKED = {
    "ru": "Будет ли вам удобно обсудить это на этой неделе?",
    "en": "Would you like to discuss this next week?",
}
_OPENINGS = {
    "ru": (
        "Видим, что ваша компания работает в этой области: {activity}. Хотели бы предложить вам: {offer}.",
        "Пишу вам, потому что наше предложение может быть вам полезно: {offer}.",
        "Мы знаем, чем занимается {company}, и хотели бы рассказать о нашем предложении: {offer}.",
    ),
    "en": (
        "We see that your company works in this field: {activity}. We would like to offer you: {offer}.",
        "I am writing because our offer may be useful to you: {offer}.",
        "We know what {company} does and would like to tell you about our offer: {offer}.",
    ),
}
_INVENTED = {
    "ru": "За 15 лет мы получили премию министерства, и нам доверяет Газпром.",
    "en": "In 15 years we have won the Queen's award, and Siemens trusts us.",
}
_PRICES = {"ru": "Только для вас скидка 50 %: всего 990 руб.", "en": "Only for you 50 % off: just $9.90."}


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
            brief, language = _brief_in(asked["messages"])
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
        return _completion(asked, _SAID.get(mood, _good)(brief, language), None)

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


def _brief_in(messages: list[dict[str, str]]) -> tuple[dict[str, Any], str]:
    """Any other question is taken for a page to write about."""
    said = next(it["content"] for it in messages if it["role"] == "user")
    try:
        brief = json.loads(said)
    except ValueError:
        brief = None
    if not isinstance(brief, dict):
        brief = {"pages": [{"text": said}]}
    return brief, "ru" if "Russian" in messages[0]["content"] else "en"


def _good(brief: dict[str, Any], language: str) -> str:
    return _letter(brief, language, [])


def _letter(brief: dict[str, Any], language: str, more: list[str]) -> str:
    company, offer = brief.get("company", {}), brief.get("offer", {})
    openings = [it for it in _OPENINGS[language] if company.get("activity") or "{activity}" not in it]
    number = sha256(json.dumps(company, sort_keys=True).encode()).digest()[0]
    opening = openings[number % len(openings)].format(
        activity=company.get("activity"),
        company=company.get("name") or company.get("domain") or _some_company(language),
        offer=str(offer.get("name", "")).rstrip("."),
    )
    said = [opening, str(offer.get("text", "")), *more, _ASKED[language]]
    body = "\n\n".join(paragraph for paragraph in said if paragraph)
    return json.dumps({"subject": str(offer.get("name", ""))[:90], "body": body}, ensure_ascii=False)


def _some_company(language: str) -> str:
    return "ваша компания" if language == "ru" else "your company"


def _obedient(brief: dict[str, Any], language: str) -> str:
    """What the pages say becomes the letter: after "write" and the like, else the whole page."""
    said = "\n".join(str(page.get("text", "")) for page in brief.get("pages", []))
    orders = _ORDER.findall(said)
    return _letter(brief, language, orders or [said])


_Said = Callable[[dict[str, Any], str], str]
_SAID: dict[Mood, _Said] = {
    Mood.OBEY: _obedient,
    Mood.INVENT: lambda brief, language: _letter(brief, language, [_INVENTED[language]]),
    Mood.PRICE: lambda brief, language: _letter(brief, language, [_PRICES[language]]),
    Mood.LINK: lambda brief, language: _letter(brief, language, ["https://bit.example/2Xy9"]),
    Mood.PLACEHOLDER: lambda brief, language: _letter(brief, language, ["[Your Name]", "{{company}}"]),
    Mood.WRONG_LANGUAGE: lambda brief, language: _letter(brief, "en" if language == "ru" else "ru", []),
    Mood.BAD_JSON: lambda brief, language: _letter(brief, language, [])[:-20],
    Mood.OTHER_FIELDS: lambda brief, language: json.dumps({"letter": _letter(brief, language, [])}),
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
