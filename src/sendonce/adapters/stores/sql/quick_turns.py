"""Turns on SQLite but for their commit: the file is within reach, and only the disk is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.ledger import SqlLedger
from sendonce.domain.engine.jobs import ClaimRequest, Settlement, Turn
from sendonce.errors import Unavailable


class UncommittedTurn:
    """A turn, and the transaction that it is in."""

    def __init__(self, turn: Turn, transaction: ExitStack) -> None:
        self._turn = turn
        self._transaction = transaction

    def commit(self) -> Turn:
        self._transaction.close()
        return self._turn


class SqliteLedger(SqlLedger):
    """A ledger with ``QuickTurns``."""

    def begin_turn(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None
    ) -> UncommittedTurn | None:
        with self.halting(), ExitStack() as stack:
            try:
                tx = stack.enter_context(self._db.writing(made_durable=False, at_once=True))
            except Unavailable:
                return None
            turn = self.settle_and_claim(tx, settlements, claim)
            return UncommittedTurn(turn, stack.pop_all())


def ledger_of(database: Database) -> SqlLedger:
    return SqliteLedger(database) if database.is_sqlite else SqlLedger(database)
