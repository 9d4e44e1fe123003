"""Is a secret one? What is short, or printed somewhere, or says one thing again and again, is not."""

from __future__ import annotations

SHORTEST = 16
_FEWEST_CHARACTERS = 5

# Values of documentation and examples, our own of former times among them, in the spelling of `_plain`.
_PRINTED = frozenset(
    {
        "rehearsalunsubscribesecret",
        "rehearsalsharedsecret",
        "opensslrandhex32",
        "opensslrandhex24",
        "opensslrandbase6432",
        "0123456789abcdef",
        "1234567890123456",
        "abcdefghijklmnop",
        "abcdefghijklmnopqrstuvwxyz",
        "correcthorsebatterystaple",
    }
)
_EXAMPLES = (
    *("changeme", "changethis", "replaceme", "replacethis", "placeholder", "putasecret", "setasecret"),
    *("yoursecret", "yourshared", "yourunsubscribe", "yourcron", "yourtoken", "yourown", "mysecret"),
    *("somesecret", "asecret", "thesecret", "examplesecret", "secretsecret", "supersecret", "verysecret"),
    *("longrandom", "randomlong", "randomstring", "randomsecret", "passwordpassword", "qwertyuiop"),
    *("executorsharedsecret", "unsubscribesecret", "cronsecret", "sharedsecret", "notasecret"),
)


def weakness(secret: str) -> str | None:
    """Why others may know or guess it, in words that follow its name and show none of it; else None."""
    if len(secret) < SHORTEST:
        return f"has {len(secret)} characters"
    plain = _plain(secret)
    if not _PRINTED.isdisjoint((plain, plain[:SHORTEST])) or plain.startswith(_EXAMPLES):
        return "is an example that everybody can read"
    if len(set(secret)) < _FEWEST_CHARACTERS:
        return "repeats a few characters"
    return None


def _plain(secret: str) -> str:
    return "".join(character for character in secret.lower() if character.isalnum())
