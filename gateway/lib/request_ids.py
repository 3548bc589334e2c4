"""Pure: the form of a request id. Spec: D25"""

from __future__ import annotations

import re

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def is_request_id(text: str) -> bool:
    return _ACCEPTABLE.match(text) is not None
