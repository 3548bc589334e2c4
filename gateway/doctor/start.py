"""A setting that is refused ends every command before it begins; the doctor still gives a verdict. Contract: 6"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence


def require_settings(arguments: Sequence[str]) -> None:
    """Exit with 1 and a verdict if the settings refuse the start."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            import gateway.settings  # noqa: F401
    except SystemExit:
        message = " ".join(said.getvalue().split())
        if "--json" in arguments:
            text = json.dumps([{"check": "settings", "status": "error", "message": message}], indent=2)
        else:
            text = f"error    settings  {message}"
        sys.stdout.write(f"{text}\n")
        sys.exit(1)
    sys.stderr.write(said.getvalue())
