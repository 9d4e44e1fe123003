"""/sandbox/notion: look inside, make pages, press the button, inject faults."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from sendonce.errors import BadInput
from sendonce.sandbox.http_server import Reply, Request, json_reply
from sendonce.sandbox.notion.faults import NotionFault, NotionFaults
from sendonce.sandbox.notion.hooks import Hooks
from sendonce.sandbox.notion.properties import plain_value, value_from_plain
from sendonce.sandbox.notion.refusals import NotionRefusal
from sendonce.sandbox.notion.service import Notion
from sendonce.sandbox.notion.workspace import PERSON

PREFIX = "/sandbox/notion"
_PAGE = """\
A Notion on this machine, API versions 2025-09-03 and 2026-03-11.

token        {token}
page         {parent}   («Рассылки»: give it to sendonce notion setup)
letter       {letter}   (a sample, ready to be sent)
not shared   {unshared}   (answers 404)

Look:    GET  /sandbox/notion/pages/ID    /sandbox/notion/rows/TABLE-ID    /sandbox/notion/stats
Write:   POST /sandbox/notion/pages {{"parent": "TABLE-ID", "properties": {{"Тема": "…"}}, "blocks": […]}}
         PATCH /sandbox/notion/pages/ID {{"properties": {{"Статус": "Готово к отправке"}}}}
         POST /sandbox/notion/files {{"name": "a.png", "base64": "…"}}
         POST /sandbox/notion/share {{"id": "…", "shared": false}}
Button:  POST /sandbox/notion/press {{"page": "ID", "url": "http://127.0.0.1:3000/send-mailout",
              "headers": {{"X-Mailout-Token": "…"}}}}
         POST /sandbox/notion/resume   (an answer that is not 2xx pauses the button)
Webhook: POST /sandbox/notion/webhook {{"url": "http://127.0.0.1:3000/webhooks/notion"}}
         POST /sandbox/notion/event {{"url": "…", "page": "ID", "author": "person"}}
              (of all that was written since the last one; or give "id", "timestamp", "changed": ["Тест"])
Faults:  GET, POST, DELETE /sandbox/notion/faults
         {{"next": ["reset_after"], "on": "POST /v1/pages"}}; shares from 0 to 1: {modes};
         "slow": [5, 50] milliseconds; "retry_after": 1
"""
Wish = Mapping[str, Any]


class NotionControl:
    def __init__(self, notion: Notion) -> None:
        self._notion = notion
        self.hooks = Hooks(notion.contents)

    async def answer(self, request: Request) -> Reply:
        if request.method != "GET" and "origin" in request.headers:
            # Only browsers send Origin: no web page may steer this world behind its owner's back.
            return json_reply({"error": "Requests from web pages are refused."}, 403)
        try:
            return await self._act(request)
        except BadInput as exc:
            return json_reply({"error": str(exc)}, 400)
        except NotionRefusal as exc:
            return json_reply({"error": exc.message}, exc.status)

    async def _act(self, request: Request) -> Reply:
        name, _, rest = request.path.removeprefix(PREFIX).strip("/").partition("/")
        body = _json_object(request) if request.method in ("POST", "PATCH") else {}
        if (request.method, name) == ("GET", ""):
            return self._page()
        calls: dict[tuple[str, str], Callable[[Wish], Awaitable[dict[str, Any]]]] = {
            ("POST", "press"): self.hooks.press,
            ("POST", "webhook"): self.hooks.subscribe,
            ("POST", "event"): self.hooks.tell,
        }
        looks: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "pages"): lambda: self._plain_page(_id(rest)),
            ("GET", "rows"): lambda: self._rows(_id(rest)),
            ("GET", "stats"): self._stats,
            ("GET", "faults"): lambda: self._notion.dice.plan.describe(),
            ("POST", "faults"): lambda: self._set_faults(self._notion.dice.plan.changed(body)),
            ("DELETE", "faults"): lambda: self._set_faults(NotionFaults()),
            ("POST", "pages"): lambda: self._write(body),
            ("PATCH", "pages"): lambda: self._edit(_id(rest), body),
            ("POST", "files"): lambda: self._put_file(body),
            ("POST", "share"): lambda: self._share(body),
            ("POST", "resume"): self._resume,
        }
        wanted = (request.method, name)
        if wanted in calls:
            return json_reply(await calls[wanted](body))
        if wanted in looks:
            return json_reply(looks[wanted]())
        return json_reply({"error": f"There is no {request.method} {request.path}; see GET {PREFIX}."}, 404)

    def _page(self) -> Reply:
        seeds = self._notion.seeds
        text = _PAGE.format(
            token=self._notion.settings.token,
            parent=seeds.parent,
            letter=seeds.letter,
            unshared=seeds.unshared,
            modes=", ".join(NotionFault),
        )
        return Reply(body=text.encode(), content_type="text/plain; charset=utf-8")

    def _plain_page(self, identity: str) -> dict[str, Any]:
        page = self._notion.workspace.pages.get(identity)
        if page is None:
            raise BadInput(f"There is no page {identity}.")
        return self._plain(self._notion.contents.objects.page(page))

    def _plain(self, page: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: plain_value(it["type"], it[it["type"]]) for name, it in page["properties"].items()}
        names = ("id", "url", "created_time", "last_edited_time", "in_trash")
        return {**{name: page[name] for name in names}, "properties": values}

    def _source(self, identity: str) -> str:
        """The data source that an id means; ids of databases mean their first."""
        if identity in self._notion.workspace.databases:
            database = self._notion.contents.database(identity)
            return str(database["data_sources"][0]["id"])
        return identity

    def _rows(self, identity: str) -> list[dict[str, Any]]:
        """What is in a table and not in the trash, the oldest first."""
        source = self._source(identity)
        pages = [
            page
            for page in self._notion.workspace.pages.values()
            if page["parent"].get("data_source_id") == source and not page["in_trash"]
        ]
        return [self._plain(self._notion.contents.objects.page(page)) for page in pages]

    def _stats(self) -> dict[str, Any]:
        notion = self._notion
        return {
            "asked": dict(notion.asked),
            "answered": {str(status): count for status, count in notion.answered.items()},
            "faults": dict(notion.dice.injected),
            "button_paused": self.hooks.paused,
        }

    def _set_faults(self, plan: NotionFaults) -> dict[str, Any]:
        self._notion.dice.plan = plan
        return plan.describe()

    def _write(self, body: Wish) -> dict[str, Any]:
        """A page as its author would write it in the app: any type of block, at any depth."""
        contents = self._notion.contents
        target = self._source(_id(body.get("parent")))
        in_table = target in self._notion.workspace.data_sources
        parent = {"data_source_id" if in_table else "page_id": target}
        page = contents.create_page({"parent": parent}, author=PERSON)
        contents.append(page["id"], body.get("blocks", []), any_type=True)
        return self._edit(page["id"], body)

    def _edit(self, identity: str, body: Wish) -> dict[str, Any]:
        contents = self._notion.contents
        page = self._notion.workspace.pages.get(identity, {})
        source = self._notion.workspace.data_sources.get(page.get("parent", {}).get("data_source_id", ""))
        columns = source["properties"] if source else {"title": {"type": "title", "id": "title"}}
        said = body.get("properties") or {}
        unknown = [name for name in said if name not in columns]
        if unknown:
            raise BadInput(f"The page has no {unknown}. It has: {', '.join(columns)}.")
        values = {name: value_from_plain(columns[name], value) for name, value in said.items()}
        contents.update_page(identity, {"properties": values}, PERSON)
        self._notion.workspace.save()
        return self._plain_page(identity)

    def _put_file(self, body: Wish) -> dict[str, Any]:
        try:
            content = base64.b64decode(str(body.get("base64", "")), validate=True)
        except binascii.Error as exc:
            raise BadInput("base64 is not base64.") from exc
        self._notion.files.put(str(body.get("name")), content)
        return {"block": {"image": {"type": "file", "file": {"name_here": body["name"]}, "caption": []}}}

    def _share(self, body: Wish) -> dict[str, Any]:
        identity, unshared = _id(body.get("id")), self._notion.workspace.unshared
        if body.get("shared", True) and identity in unshared:
            unshared.remove(identity)
        elif not body.get("shared", True) and identity not in unshared:
            unshared.append(identity)
        self._notion.workspace.save()
        return {"id": identity, "shared": identity not in unshared}

    def _resume(self) -> dict[str, Any]:
        self.hooks.paused = False
        return {"paused": False}


def _id(text: Any) -> str:
    try:
        return str(UUID(str(text)))
    except ValueError:
        raise BadInput(f"{text!r} is not an id.") from None


def _json_object(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body or b"{}") or {}
    except (ValueError, RecursionError) as exc:
        raise BadInput("The body must be a JSON object.") from exc
    if not isinstance(value, dict):
        raise BadInput("The body must be a JSON object.")
    return value
