"""What the pages for readers have in common: one frame, two languages. No script, no outside assets."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.answers import answer

LANGUAGES = ("en", "ru")

_STYLE = """
:root{color-scheme:light dark}
body{margin:0;font:18px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff}
main{max-width:32em;margin:12vh auto;padding:0 1.25em}
h1{font-size:1.5em;line-height:1.25;margin:0 0 .5em}
p{overflow-wrap:anywhere}
[role=note]{padding:.6em 1em;border-left:.3em solid #b26a00;background:#fff3dc}
button{font:inherit;padding:.6em 1.2em;border:0;border-radius:.4em;cursor:pointer;
color:#fff;background:#1d4f91}
button:focus-visible{outline:3px solid #1d4f91;outline-offset:3px}
@media(prefers-color-scheme:dark){body{color:#f0f0f0;background:#161616}[role=note]{background:#3a2a0c}
button{color:#10233c;background:#9cc4ff}button:focus-visible{outline-color:#9cc4ff}}
"""

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def framed(language: str, title: str, heading: str, content: str) -> str:
    """A whole page. What is given is HTML already."""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex, nofollow">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{heading}</h1>\n{content}\n</main>\n</body>\n</html>\n"
    )


def page_answer(page: str, language: str, status: int = 200) -> Response:
    headers = {
        "Content-Language": language,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Vary": "Accept-Language",
        "X-Robots-Tag": "noindex, nofollow",
    }
    return answer(page.encode("utf-8"), "text/html; charset=utf-8", status, headers)


def language_for(request: Request, owners: str) -> str:
    """The owner's, else the one that the reader's first page had, else what the browser likes."""
    kept = request.query_params.get("lang", "")
    wanted = request.headers.get("accept-language", "")
    return owners or (kept if kept in LANGUAGES else choose_language(wanted))


def choose_language(accepted: str) -> str:
    """Russian or English, whichever an Accept-Language header (RFC 9110 §12.5.4) likes better."""
    best, best_weight = "en", 0.0
    for item in accepted[:1000].split(",")[:50]:
        name, _, parameter = item.strip().partition(";")
        language = name.strip().lower().partition("-")[0]
        weight = _weight(parameter)
        if language in LANGUAGES and weight > best_weight:
            best, best_weight = language, weight
    return best


def _weight(parameter: str) -> float:
    name, _, digits = parameter.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(digits)
    except ValueError:
        return 0.0
