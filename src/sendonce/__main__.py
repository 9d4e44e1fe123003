"""``python -m sendonce`` is the command ``sendonce``."""

from sendonce.entrypoints.cli.app import main

main()
