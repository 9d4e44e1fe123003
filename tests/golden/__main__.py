"""``python -m tests.golden`` writes the golden files anew: look at what git says has changed."""

from __future__ import annotations

from tests.golden.cases import HERE, write_golden_files
from tests.golden.support import write_support_baseline

for path in write_golden_files():
    print("written:", path.relative_to(HERE))  # noqa: T201
print("mail programs:", write_support_baseline())  # noqa: T201
