"""The working parts of written letters."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sendonce.flows.prospecting.plan_written_letters import SendingRules
    from sendonce.flows.prospecting.write_letters import WritingRules
    from sendonce.ports.prospecting import LetterModel
    from sendonce.settings import Settings


def letter_model(settings: Settings) -> LetterModel | None:
    """The language model in force; None where letters come from templates."""
    if not settings.has_model:
        return None
    from sendonce.adapters.llm.chat import ChatModel, ChatSettings
    from sendonce.adapters.llm.kept_answers import KeptAnswers

    chat = ChatSettings(
        base_url=settings.openai_base_url,
        api_key=settings.openai_api_key,
        model=settings.openai_model,
        temperature=settings.openai_temperature,
        seed=settings.openai_seed,
        timeout=settings.openai_timeout_seconds,
        input_price=settings.openai_input_price,
        output_price=settings.openai_output_price,
    )
    return ChatModel(chat, KeptAnswers(settings.state_dir / "model-answers"))


def writing_rules(settings: Settings) -> WritingRules:
    from sendonce.flows.prospecting.write_letters import WritingRules

    return WritingRules(
        auto_approve=settings.letters_auto_approve,
        budget=settings.letters_nightly_budget,
        model=letter_model(settings),
    )


def sending_rules(settings: Settings) -> SendingRules:
    from sendonce.domain.prospecting.send_slots import WorkingHours
    from sendonce.flows.prospecting.plan_written_letters import SendingRules
    from sendonce.wiring.house import time_zone

    opens, _, closes = settings.letters_hours.partition("-")
    first, _, last = settings.letters_days.partition("-")
    days = frozenset(range(int(first) - 1, int(last or first)))
    hours = WorkingHours(time.fromisoformat(opens), time.fromisoformat(closes), time_zone(settings), days)
    return SendingRules(settings.daily_send_limit, hours)
