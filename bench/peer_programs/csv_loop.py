"""The bare loop: csv, a regular expression, INSERT OR IGNORE into SQLite with the same durability.

python csv_loop.py FILE.csv DATABASE
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def rows(path: str) -> Iterator[tuple[str, str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            address = row["email"].strip().lower()
            if ADDRESS.fullmatch(address):
                yield address, row["name"], row["city"]


database = sqlite3.connect(sys.argv[2])
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = FULL")
database.execute("CREATE TABLE subscribers (email TEXT PRIMARY KEY, name TEXT, city TEXT)")
with database:
    database.executemany("INSERT OR IGNORE INTO subscribers VALUES (?, ?, ?)", rows(sys.argv[1]))
print(json.dumps({"kept": database.execute("SELECT count(*) FROM subscribers").fetchone()[0]}))
database.close()
