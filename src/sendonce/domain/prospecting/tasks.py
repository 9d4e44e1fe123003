"""Tasks: pieces of the pipeline's work that any worker may take, each under a lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sendonce.domain.engine.tenants import TenantId


class TaskKind(StrEnum):
    VISIT = "visit"
    DEDUPE = "dedupe"


@dataclass(frozen=True, slots=True)
class NewTask:
    """``key`` says what it is about: while a task with that key is open, another is not added.

    It is taken from ``due_at`` on, and not after ``window_until``. The lowest ``priority`` goes first.
    """

    tenant_id: TenantId
    kind: TaskKind
    key: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    due_at: datetime | None = None
    window_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task in the hands of a worker. ``attempt`` counts from 1; with the worker it is the lease's proof."""

    id: str
    tenant_id: TenantId
    kind: TaskKind
    payload: Mapping[str, Any]
    attempt: int
    worker: str


def visit_task(tenant_id: TenantId, company_id: str) -> NewTask:
    return NewTask(tenant_id, TaskKind.VISIT, f"visit:{company_id}", {"company": company_id})


def dedupe_task(tenant_id: TenantId, company_id: str) -> NewTask:
    return NewTask(tenant_id, TaskKind.DEDUPE, f"dedupe:{company_id}", {"company": company_id})


MOST_ATTEMPTS = 4


def next_attempt(attempt: int, now: datetime) -> datetime | None:
    """When to try again what has failed: after 10 minutes, 40, 160. None when it has failed often enough."""
    if attempt >= MOST_ATTEMPTS:
        return None
    return now + timedelta(minutes=10 * 4.0 ** (attempt - 1))
