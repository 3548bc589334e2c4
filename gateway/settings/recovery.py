"""The journal of ends, which a restored database is brought up to date with. docs/decisions/0082"""

from pathlib import Path

from gateway.settings import env
from gateway.settings.base import VAR

_journal = env.text("REVOCATION_JOURNAL", str(VAR / "revocations.jsonl"))
# None: no journal is written.
REVOCATION_JOURNAL = None if _journal.lower() in {"0", "off"} else Path(_journal).resolve()
