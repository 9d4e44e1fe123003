"""Places where a test may make a step of the pipeline die: see domain/engine/failpoints."""

from __future__ import annotations

NAMES = ("submit-before", "submit-after", "fetch-after", "ingest-kept", "ingest-found")
