"""Texts as Notion takes them and gives them back."""

from __future__ import annotations

from typing import Any

from sendonce.sandbox.notion.refusals import invalid

_MOST_UNITS = 2000
_MOST_ITEMS = 100
_PLAIN = {
    "bold": False,
    "italic": False,
    "strikethrough": False,
    "underline": False,
    "code": False,
    "color": "default",
}


def text(content: str) -> list[dict[str, Any]]:
    """A text without any marks, as it is stored."""
    return stored([{"type": "text", "text": {"content": content}}], "text") if content else []


def stored(items: Any, where: str) -> list[dict[str, Any]]:
    """Check what a request brings, and add what Notion adds: plain_text, href, all annotations."""
    if not isinstance(items, list):
        raise invalid(f"body failed validation: {where} should be an array.")
    if len(items) > _MOST_ITEMS:
        raise invalid(
            f"body failed validation: {where}.length should be ≤ `100`, instead was `{len(items)}`."
        )
    return [_stored_item(item, f"{where}[{number}]") for number, item in enumerate(items)]


def _stored_item(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise invalid(f"body failed validation: {where} should be an object.")
    kind = item.get("type") or next((it for it in ("text", "mention", "equation") if it in item), None)
    body = item.get(kind) if isinstance(kind, str) else None
    if kind not in ("text", "mention", "equation") or not isinstance(body, dict):
        raise invalid(f"body failed validation: {where}.text should be defined, instead was `undefined`.")
    link = body.get("link") if kind == "text" else None
    href = link.get("url") if isinstance(link, dict) else item.get("href")
    return {
        "type": kind,
        kind: {"content": _content(body, where), "link": link} if kind == "text" else body,
        "annotations": {**_PLAIN, **item.get("annotations", {})},
        "plain_text": body["content"] if kind == "text" else _said(kind, item, body),
        "href": href,
    }


def _content(body: dict[str, Any], where: str) -> str:
    content = body.get("content")
    if not isinstance(content, str):
        raise invalid(f"body failed validation: {where}.text.content should be a string.")
    units = len(content.encode("utf-16-le", "surrogatepass")) // 2
    if units > _MOST_UNITS:
        raise invalid(
            f"body failed validation: {where}.text.content.length should be ≤ `2000`, instead was `{units}`."
        )
    return content


def _said(kind: str, item: dict[str, Any], body: dict[str, Any]) -> str:
    return str(body.get("expression", "")) if kind == "equation" else str(item.get("plain_text", ""))


def plain(items: list[dict[str, Any]]) -> str:
    return "".join(item["plain_text"] for item in items)
