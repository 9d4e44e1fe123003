"""Settings of the pipeline that prospecting runs."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.settings import kinds
from sendonce.settings.kinds import setting, whole


# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class PipelineSettings:
    # The pipeline
    prospect_batch_size: int = setting("pipeline", whole(1, 100_000), 100,
        "How many searches, sites, companies or letters a step takes in one cycle.")
    prospect_interval_seconds: float = setting("pipeline", kinds.seconds(zero=False), 60.0,
        "How long 'prospect run --loop' waits after a cycle that found nothing to do.")
    prospect_journal_keep_days: int = setting("pipeline", whole(0, 36_500), 90,
        "How long a line stays in the pipeline's journal; 0 keeps them for ever.")
    # fmt: on
