"""GET /letter?token=…: a letter as its reader got it, if VIEW_IN_BROWSER is on."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sendonce.domain.engine.tokens import VIEW
from sendonce.entrypoints.http import pages
from sendonce.entrypoints.http.answers import answer
from sendonce.entrypoints.http.links import LinkReader
from sendonce.entrypoints.http.page_frame import CONTENT_SECURITY_POLICY, choose_language
from sendonce.entrypoints.http.service import Service
from sendonce.errors import Unavailable
from sendonce.flows.mailouts.view_letter import view_letter

# Images and styles are the letter's; nothing in it runs, and nothing is sent from it.
_POLICY = (
    "default-src 'none'; img-src http: https:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HTML = "text/html; charset=utf-8"
_HIDDEN = {"X-Robots-Tag": "noindex, nofollow"}


class LetterPageEndpoint:
    def __init__(self, service: Service, links: LinkReader) -> None:
        self._service = service
        self._links = links

    async def get(self, request: Request) -> Response:
        settings = self._service.settings
        language = settings.mail_language or choose_language(request.headers.get("accept-language", ""))
        page = None
        try:
            job_id = None
            if settings.view_in_browser:
                job_id = await self._links.job_of(request.query_params.get("token", ""), VIEW)
            if job_id is not None:
                address = settings.mail_footer_address
                page = await self._service.in_thread(view_letter, self._service.store, job_id, address)
        except Unavailable:
            return answer(pages.out_of_order(language).encode(), _HTML, 503, _own_style())
        if page is None:
            status = 404 if self._service.gate.tolerates(request) else 429
            return answer(pages.no_letter(language).encode(), _HTML, status, _own_style())
        return answer(
            page.encode("utf-8", "replace"), _HTML, 200, _HIDDEN | {"Content-Security-Policy": _POLICY}
        )


def _own_style() -> dict[str, str]:
    return _HIDDEN | {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
