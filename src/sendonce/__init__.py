"""sendonce finds the people, writes the letter, sends it once, and can prove it."""

__version__ = "0.1.0"
