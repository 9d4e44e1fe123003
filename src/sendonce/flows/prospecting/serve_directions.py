"""Take a step of the pipeline for every direction of every tenant."""

from __future__ import annotations

from collections.abc import Callable

from sendonce.domain.people.directions import Direction
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.errors import RefusedByRule
from sendonce.ports.prospecting import ProspectingStore


def serve_directions(store: ProspectingStore, step: Callable[[Direction], StepCount]) -> StepCount:
    """What was done for all of them. A direction that a rule refuses keeps no other one back."""
    counts = [_tried(step, direction) for direction in store.directions.all()]
    return StepCount(
        taken=sum(count.taken for count in counts),
        done=sum(count.done for count in counts),
        failed=sum(count.failed for count in counts),
        note=" ".join(dict.fromkeys(count.note for count in counts if count.note)),
    )


def _tried(step: Callable[[Direction], StepCount], direction: Direction) -> StepCount:
    try:
        return step(direction)
    except RefusedByRule as exc:
        return StepCount(note=str(exc))
