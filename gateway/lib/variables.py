"""Variables of the environment. NAME_FILE may name a file with the value, as container secrets are given."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)


def given(name: str) -> str:
    """The variable, else the content of the file in NAME_FILE, else "". Raises: OSError if the file is unreadable."""
    if value := os.environ.get(name, ""):
        return value
    path = os.environ.get(f"{name}_FILE", "")
    return Path(path).read_text(encoding="utf-8").strip() if path else ""


def readable(name: str) -> str:
    """The same of a variable that the service runs without: "" where its file can't be read, which the log says."""
    try:
        return given(name)
    except OSError as fault:
        log.warning("the file of a variable cannot be read", variable=f"{name}_FILE", fault=fault.strerror)
        return ""
