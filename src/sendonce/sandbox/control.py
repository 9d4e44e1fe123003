"""/sandbox/: look inside, inject faults, wait for something to happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sendonce.errors import BadInput
from sendonce.sandbox.faults import Dice, Fault, FaultPlan
from sendonce.sandbox.http_server import Reply, Request, json_reply
from sendonce.sandbox.settings import loopback_target

if TYPE_CHECKING:
    from sendonce.sandbox.world import World

_MOST_ROWS = 1000
_PAGE = """\
sendonce sandbox: a small world that stands in for Amazon SES and SNS, for Notion,
for Yandex Search and for a language model.
Nothing leaves this machine.

SES v2 and SNS    {endpoint}
Notion            {endpoint}   (GET /sandbox/notion tells what may be asked of it)
Yandex Search     {endpoint}   (GET /sandbox/yandex tells what may be asked of it)
language model    {endpoint}/v1   (POST /sandbox/llm {{"mood": "obey"}}; GET tells its moods)
companies' sites  {endpoint}   (by the Host header; companies.json in the directory tells what is true)
second region     {second}
topic             {topic_arn}
events go to      {events_url}
directory         {directory}   (accepted.jsonl is the log of acceptances)
seed              {seed}

accepted {accepted} letters, {duplicates} of them duplicates; refused {refused}
events: {events}

Look:     GET  /sandbox/stats   /sandbox/faults   /sandbox/accepted?job=ID   /sandbox/accepted?to=ADDRESS
Wait:     GET  /sandbox/wait?events_pending=0&timeout=10   (also accepted=N, events_sent=N)
Events:   POST /sandbox/pause_events   /sandbox/resume_events   /sandbox/release_events
          POST /sandbox/subscribe {{"url": "http://127.0.0.1:3000/ses-events"}}
Faults:   POST /sandbox/faults {{"error_after": 0.1, "events": {{"duplicate": 0.2}}}}
          shares from 0 to 1: {modes}
          "next": ["reset_after", "ok"] decides the very next requests
          "slow": [5, 50] milliseconds; "hang_seconds": 30; "error_status": 503
          events: duplicate, republish, withhold (shares), withhold_jobs, late (seconds), shuffle
          DELETE /sandbox/faults clears them all
"""


class Control:
    def __init__(self, world: World) -> None:
        self._world = world

    async def answer(self, request: Request) -> Reply:
        name = request.path.removeprefix("/sandbox").strip("/")
        if request.method != "GET" and "origin" in request.headers:
            # Only browsers send Origin: no web page may steer this world behind its owner's back.
            return json_reply({"error": "Requests from web pages are refused."}, 403)
        try:
            if request.method == "GET" and name == "accepted":
                return json_reply(await asyncio.to_thread(self._accepted, request.parameters()))
            if request.method == "GET" and name == "wait":
                return await self._wait(request.parameters())
            action = self._actions().get((request.method, name))
            if action is None:
                hint = f"There is no {request.method} {request.path}; GET /sandbox/ tells what there is."
                return json_reply({"error": hint}, 404)
            return action(request)
        except BadInput as exc:
            return json_reply({"error": str(exc)}, 400)

    def _actions(self) -> dict[tuple[str, str], Callable[[Request], Reply]]:
        return {
            ("GET", ""): lambda _request: self._page(),
            ("GET", "stats"): lambda _request: json_reply(self._world.stats()),
            ("GET", "faults"): self._faults,
            ("POST", "faults"): self._faults,
            ("DELETE", "faults"): self._faults,
            ("POST", "pause_events"): lambda _request: self._pause(True),
            ("POST", "resume_events"): lambda _request: self._pause(False),
            ("POST", "release_events"): lambda _request: self._release(),
            ("POST", "subscribe"): self._subscribe,
        }

    def _page(self) -> Reply:
        world = self._world
        stats = world.stats()
        text = _PAGE.format(
            endpoint=world.addresses.endpoint,
            second=world.addresses.others.get("SES_SECOND_ENDPOINT_URL", "none: --second-region eu-west-1"),
            topic_arn=world.settings.topic_arn,
            events_url=stats["events"]["url"] or "nobody: POST /sandbox/subscribe",
            directory=world.settings.directory,
            seed=world.dice.seed,
            accepted=stats["accepted"],
            duplicates=stats["duplicates"],
            refused=stats["refused"] or "none",
            events=", ".join(f"{name} {value}" for name, value in stats["events"].items() if name != "url"),
            modes=", ".join(Fault),
        )
        return Reply(body=text.encode(), content_type="text/plain; charset=utf-8")

    def _faults(self, request: Request) -> Reply:
        return answer_faults(request, self._world.dice)

    def _pause(self, paused: bool) -> Reply:
        self._world.courier.set_paused(paused)
        return json_reply(self._world.stats()["events"])

    def _release(self) -> Reply:
        return json_reply({"released": self._world.courier.release()})

    def _subscribe(self, request: Request) -> Reply:
        url = _json_object(request).get("url")
        if not isinstance(url, str):
            raise BadInput('Give the address: {"url": "http://127.0.0.1:3000/ses-events"}.')
        loopback_target(url)
        self._world.subscribe(url)
        return json_reply(self._world.stats()["events"])

    def _accepted(self, wanted: dict[str, str]) -> list[dict[str, object]]:
        """The last rows of the log that match; the log itself has them all."""
        rows = [
            acceptance.record()
            for acceptance in self._world.log.read()
            if wanted.get("job") in (None, acceptance.job)
            and ("to" not in wanted or wanted["to"] in acceptance.recipients)
        ]
        return rows[-_MOST_ROWS:]

    async def _wait(self, wanted: dict[str, str]) -> Reply:
        limits = {name: _number(name, value) for name, value in wanted.items()}
        timeout = limits.pop("timeout", 10.0)
        unknown = limits.keys() - {"events_pending", "accepted", "events_sent"}
        if unknown or not limits:
            raise BadInput("Wait for events_pending=N (at most), accepted=N or events_sent=N (at least).")
        courier, tally = self._world.courier, self._world.ses.tally

        def reached() -> bool:
            return (
                courier.pending <= limits.get("events_pending", courier.pending)
                and tally.accepted >= limits.get("accepted", 0)
                and courier.sent >= limits.get("events_sent", 0)
            )

        came_true = await self._world.progress.until(reached, timeout)
        return json_reply({"reached": came_true, **self._world.stats()}, 200 if came_true else 504)


def answer_faults(request: Request, dice: Dice) -> Reply:
    """/sandbox/faults: GET tells them, POST changes some, DELETE clears them all."""
    try:
        if request.method == "POST":
            dice.plan.change(_json_object(request))
        elif request.method == "DELETE":
            dice.plan = FaultPlan()
        return json_reply(dice.plan.describe())
    except BadInput as exc:
        return json_reply({"error": str(exc)}, 400)


def _json_object(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError) as exc:
        raise BadInput("The body must be a JSON object.") from exc
    if not isinstance(value, dict):
        raise BadInput("The body must be a JSON object.")
    return value


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadInput(f"{name} is {value!r}: give a number.") from None
