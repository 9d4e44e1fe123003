"""Places where a test may make a step of the pipeline die: see domain/engine/failpoints."""

from __future__ import annotations

SEARCHING = ("submit-before", "submit-after", "fetch-after", "ingest-kept", "ingest-found")
WRITING = ("site-read", "contacts-kept", "visit-settled", "dedupe-judged", "letter-written", "plan-begun")
NAMES = (*SEARCHING, *WRITING)
