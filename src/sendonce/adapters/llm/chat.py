"""A language model behind the chat completions API, which OpenAI and most others speak."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from sendonce.adapters.llm.kept_answers import KeptAnswers
from sendonce.domain.engine.strict_json import strict_object
from sendonce.domain.prospecting.letter_requests import ModelAnswer, ModelRequest
from sendonce.errors import BadInput, Unavailable

_LONGEST_ANSWER = 1_000_000
_MOST_TOKENS = 2000
_TRIES = 2
_TOO_MANY = 429
_BUSY = frozenset((408, _TOO_MANY, 500, 502, 503, 504))
# About what a token is, in Russian; only where the service does not count them itself.
_CHARACTERS_A_TOKEN = 3
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """``timeout`` is for all of one answer, in seconds; prices are those of a million tokens."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    temperature: float
    seed: int
    timeout: float
    input_price: float
    output_price: float


class ChatModel:
    def __init__(self, settings: ChatSettings, kept: KeptAnswers) -> None:
        self._settings = settings
        self._kept = kept
        self.name = settings.model

    def answer(self, request: ModelRequest) -> ModelAnswer:
        body = self._body(request)
        key = hashlib.sha256(f"{self._settings.base_url}\n".encode() + body).hexdigest()
        known = self._kept.get(key)
        if known is not None:
            return ModelAnswer(known)
        answer = self._read(self._post(body), len(body))
        self._kept.put(key, answer.content)
        return answer

    def _body(self, request: ModelRequest) -> bytes:
        it = self._settings
        asked = {
            "model": it.model,
            "messages": list(request.messages),
            "temperature": it.temperature,
            "seed": it.seed,
            "max_tokens": _MOST_TOKENS,
            "response_format": {"type": "json_schema", "json_schema": request.schema},
        }
        return json.dumps(asked, ensure_ascii=False, sort_keys=True).encode()

    def _post(self, body: bytes) -> bytes:
        """The answer's bytes, from the second try if the first met a busy service."""
        import httpx

        deadline = time.monotonic() + self._settings.timeout
        failure = Unavailable("the model did not answer")
        # Loading certificates takes longer than asking a service on this machine, which has none.
        encrypted, timeout = self._settings.base_url.startswith("https:"), self._settings.timeout
        with httpx.Client(
            trust_env=False, timeout=timeout, follow_redirects=False, verify=encrypted
        ) as client:
            for _ in range(_TRIES):
                try:
                    status, content, wait = self._exchange(client, body, deadline)
                except (httpx.HTTPError, httpx.InvalidURL) as exc:
                    raise Unavailable(f"the model did not answer: {type(exc).__name__}") from exc
                if status == 200:
                    return content
                failure = Unavailable(f"the model answered with status {status}")
                if status not in _BUSY or time.monotonic() + wait > deadline:
                    break
                time.sleep(wait)
        raise failure

    def _exchange(self, client: Any, body: bytes, deadline: float) -> tuple[int, bytes, float]:
        """Status, body and the seconds to wait before the next try."""
        headers = {"Content-Type": "application/json"}
        if self._settings.api_key:
            headers["Authorization"] = f"Bearer {self._settings.api_key}"
        url = f"{self._settings.base_url}/chat/completions"
        content = bytearray()
        with client.stream("POST", url, content=body, headers=headers) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _LONGEST_ANSWER:
                    raise Unavailable("the model's answer is too long")
                if time.monotonic() > deadline:
                    raise Unavailable("the model took too long to answer")
            return response.status_code, bytes(content), _seconds(response.headers.get("retry-after"))

    def _read(self, content: bytes, asked: int) -> ModelAnswer:
        try:
            whole = strict_object(content, "the model's reply")
        except BadInput as exc:
            raise Unavailable("the model's reply is not JSON") from exc
        choices = whole.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            refused = isinstance(message, dict) and message.get("refusal")
            raise Unavailable("the model refused" if refused else "the model's reply has no message")
        text = message["content"]
        return ModelAnswer(text, self._price(whole.get("usage"), asked, len(text)))

    def _price(self, usage: Any, asked: int, answered: int) -> float:
        counted = usage if isinstance(usage, dict) else {}
        asked_tokens = _count(counted.get("prompt_tokens"), asked)
        answered_tokens = _count(counted.get("completion_tokens"), answered)
        prices = asked_tokens * self._settings.input_price + answered_tokens * self._settings.output_price
        return prices / _MILLION


def _count(told: Any, characters: int) -> int:
    if isinstance(told, int) and not isinstance(told, bool) and told >= 0:
        return told
    return characters // _CHARACTERS_A_TOKEN


def _seconds(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or 0.5))
    except ValueError:
        return 0.5
