"""Settings of the letters that prospecting writes."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.settings import kinds
from sendonce.settings.kinds import secret, setting, whole

OPENAI = "https://api.openai.com/v1"


# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class LetterSettings:
    # Written letters
    openai_api_key: str = secret("letters",
        "platform.openai.com/api-keys, or what your compatible service gives. Without it, and without a "
        "service of your own in OPENAI_BASE_URL, letters come from templates.")
    openai_base_url: str = setting("letters", kinds.url, OPENAI,
        "Where the language model is; any service with the same API. From its documentation.")
    openai_model: str = setting("letters", kinds.text, "gpt-4.1-mini",
        "The model that writes letters. From the service's list of models.")
    openai_temperature: float = setting("letters", kinds.number(0, 2), 0.2,
        "How freely it writes: 0 is most alike from letter to letter.")
    openai_seed: int = setting("letters", whole(0), 1,
        "The same seed and brief give the same letter, as far as the service promises it; answers are kept "
        "in STATE_DIR besides.")
    openai_timeout_seconds: float = setting("letters", kinds.seconds(zero=False), 60.0,
        "How long it may take to answer before the template writes the letter.")
    openai_input_price: float = setting("letters", kinds.number(0), 0.4,
        "What a million tokens of a question cost, in your currency. From the service's price list.")
    openai_output_price: float = setting("letters", kinds.number(0), 1.6,
        "What a million tokens of an answer cost, in your currency. From the service's price list.")
    letters_nightly_budget: float = setting("letters", kinds.number(0), 2.0,
        "What the model may cost in 24 hours, in the same currency; then letters come from templates.")
    letters_auto_approve: bool = setting("letters", kinds.flag, False,
        "Whether letters that pass all checks go without a person's review.")
    daily_send_limit: int = setting("letters", whole(0), 100,
        "Letters to companies in any 24 hours, of all directions together.")
    letters_hours: str = setting("letters", kinds.hours, "09:00-18:00",
        "When letters to companies leave, on the clock of APP_TIMEZONE.")
    letters_days: str = setting("letters", kinds.week_days, "1-5",
        "On which days they leave: 1 is Monday, 1-5 the working week, 1-7 every day.")
    editor: str = setting("letters", kinds.text, "nano",
        "The editor that a letter is edited in; a command, with its options.")
    # fmt: on

    @property
    def has_model(self) -> bool:
        """A service of one's own needs no key."""
        return bool(self.openai_api_key) or self.openai_base_url != OPENAI
