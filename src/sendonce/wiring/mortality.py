"""Settings in, what proves a worker's death out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sendonce.errors import BadSetting
from sendonce.settings import Settings
from sendonce.wiring.stores import state_directory

if TYPE_CHECKING:
    from sendonce.ports.mortality import Mortality
    from sendonce.ports.store import Store

SIGNATURE = "signature"


def mortality_of(settings: Settings, store: Store) -> Mortality:
    """The state directory of this machine, unless the letters' own signatures are to prove their death."""
    if settings.death_proof != SIGNATURE:
        return state_directory(settings, store)
    from sendonce.adapters.signatures import Diskless

    return Diskless()


def require_death_proof(settings: Settings) -> None:
    """Raises BadSetting where nothing could ever prove that a letter can no longer leave."""
    if settings.death_proof == SIGNATURE and settings.transport != "ses":
        raise BadSetting(
            f"DEATH_PROOF is signature, and letters leave by {settings.transport}: only SES refuses what "
            "was signed too long ago. Set DEATH_PROOF=lock, or send through SES."
        )
