"""Whose rows they are."""

from __future__ import annotations

from typing import NewType

TenantId = NewType("TenantId", str)
"""A client whose data is kept apart. The first argument of every verb that reads or writes a tenant's rows: a
type of its own, so that no other text can be passed in its place."""

DispatchId = NewType("DispatchId", str)
"""The handle of a dispatch. Only a verb gives it that was told the tenant; a text from outside is none."""
