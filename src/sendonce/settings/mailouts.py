"""Settings of door A: what every letter carries, and Notion."""

from __future__ import annotations

from dataclasses import dataclass

from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_LIMIT
from sendonce.settings import kinds
from sendonce.settings.kinds import secret, secret_list, setting, whole


# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class MailoutSettings:
    # Mailouts
    mail_footer_address: str = setting("mailouts", kinds.text, "",
        "The postal address at the foot of every letter; the law of most countries asks for one.",
        "Example Ltd, 1 Example Street, Riga LV-1001")
    soft_bounce_limit: int = setting("mailouts", whole(0, 1000), SOFT_BOUNCE_LIMIT,
        "After so many letters in a row that came back for a passing reason (a full mailbox, say) a "
        "subscriber is bounced; 0 is never.")
    mail_language: str = setting("mailouts", kinds.choice("ru", "en"), "",
        "The language of footers and of the unsubscribe page.", "ru", otherwise="that of the letter")
    list_name: str = setting("mailouts", kinds.text, "",
        "What your readers know your letters by; the unsubscribe page names it.", "The Bakery",
        otherwise="the From name, or the domain of the From address")
    test_emails: tuple[str, ...] = setting("mailouts", kinds.several(kinds.email), (),
        "Who gets a mailout in test mode. Your own addresses.", "me@example.com,colleague@example.com")
    unsubscribe_secret: str = secret("mailouts",
        "Signs unsubscribe links. Leave it empty: one is made and kept in the database. If you set your own "
        "(openssl rand -hex 32), keep it: links in letters already sent work as long as it is here or in "
        "UNSUBSCRIBE_FORMER_SECRETS.")
    unsubscribe_former_secrets: tuple[str, ...] = secret_list("mailouts",
        "What UNSUBSCRIBE_SECRET was before, comma-separated: links signed with them still work. See the "
        "how-to about rotating keys.")
    view_in_browser: bool = setting("mailouts", kinds.flag, False,
        "Whether letters link to a page that shows them as their reader got them. Whoever has the link sees "
        "that page.")
    unsubscribe_confirm: bool = setting("mailouts", kinds.flag, False,
        "Whether the unsubscribe page asks first, for lists plagued by link scanners.")
    sign_up: bool = setting("mailouts", kinds.flag, False,
        "Whether POST /subscribe is open: whoever signs up gets a letter, and is a subscriber once they have "
        "confirmed it.")
    sign_up_wording: str = setting("mailouts", kinds.text, "",
        "What people agree to on your sign-up form, word for word: kept as the record of their consent.",
        "Send me the letter of the week.", otherwise="that they want your letters, in their language")
    # Notion
    notion_token: str = secret("Notion",
        "notion.so/my-integrations: New integration, Internal integration secret.")
    notion_letters_id: str = setting("Notion", kinds.text, "",
        "The «Письма» database: 32 digits in its link, or what sendonce notion setup prints.",
        "0123456789abcdef0123456789abcdef")
    notion_errors_id: str = setting("Notion", kinds.text, "",
        "The «Ошибки» database, found likewise.", "0123456789abcdef0123456789abcdef")
    notion_webhook_token: str = secret("Notion",
        "The verification token of the integration's webhook: sendonce notion await-webhook prints it.")
    notion_names: str = setting("Notion", kinds.json_object, "",
        "Your own names of columns and options, where they are not ours: a JSON object, as in the how-to "
        "about Notion.", '{"status": "State", "status.ready": "Go"}')
    notion_api_url: str = setting("Notion", kinds.url, "https://api.notion.com",
        "Where Notion's API is; a stand-in prints its own address.")
    # fmt: on
