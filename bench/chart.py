"""The chart: each finding that has a bar as a share of it, drawn in a few lines of SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.findings import Finding

_LABEL, _WIDTH, _ROW, _TOP = 430, 380, 26, 56
_MOST = 2.0  # a bar ends here: twice what was asked for


def draw(findings: Sequence[Finding]) -> str:
    judged = [finding for finding in findings if finding.bar is not None]
    height = _TOP + _ROW * len(judged) + 24
    full = _LABEL + _WIDTH + 170
    line = _LABEL + _WIDTH / _MOST
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {height}" width="{full}" '
        f'height="{height}" font-family="Arial, sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<text x="12" y="24" font-size="16" font-weight="bold" fill="#1f2328">What was found, as a share of '
        "what is asked for</text>",
        f'<text x="{line}" y="46" text-anchor="middle" fill="#57606a">the bar</text>',
    ]
    for number, finding in enumerate(judged):
        parts += _row(finding, _TOP + _ROW * number)
    parts.append(f'<path d="M{line} {_TOP - 4}V{height - 20}" stroke="#1f2328" stroke-dasharray="4 3"/>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def _share_of_bar(value: float, bar: float, *, at_most: bool) -> float:
    if not at_most:
        return value / bar
    return bar / value if value else _MOST


def _row(finding: Finding, top: float) -> list[str]:
    assert finding.bar is not None
    length = _WIDTH * min(_share_of_bar(finding.value, finding.bar, at_most=finding.at_most), _MOST) / _MOST
    colour = "#2da44e" if finding.met else "#bf8700"
    what = escape(f"{finding.what} / {finding.against}")
    end = _LABEL + length + 6
    return [
        f'<text x="{_LABEL - 8}" y="{top + 16}" text-anchor="end" font-size="11" fill="#1f2328">'
        f"{what}</text>",
        f'<rect x="{_LABEL}" y="{top + 4}" width="{length:.1f}" height="16" fill="{colour}"/>',
        f'<text x="{end:.1f}" y="{top + 17}" fill="#57606a">{escape(finding.shown)} '
        f"({escape(finding.bar_shown)})</text>",
    ]
