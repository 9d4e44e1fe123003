"""Where Vercel looks for the app. It copies the repository and does not install it, hence the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from sendonce.entrypoints.vercel import app

__all__ = ["app"]
