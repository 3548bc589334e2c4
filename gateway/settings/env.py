"""Readers of the environment. A value may also come from the file that NAME_FILE names (container secrets)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import environ

BASE_DIR = Path(__file__).resolve().parent.parent.parent
reader = environ.Env()
# Every variable that a setting asked for, given or not: a start writes them down for later commands.
asked: set[str] = set()


def refuse(name: str, what: str) -> NoReturn:
    """Stop the start with one line that names the variable; a traceback would hide it. Contract: 5"""
    sys.stderr.write(f"Cannot start: {name} {what}\n")
    sys.exit(78)  # EX_CONFIG


def text(name: str, default: str = "") -> str:
    """The variable, or the content of the file that NAME_FILE names, or the default."""
    asked.add(name)
    if value := os.environ.get(name, ""):
        return value
    if path := os.environ.get(f"{name}_FILE", ""):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as fault:
            refuse(f"{name}_FILE", f"names a file that cannot be read ({fault.strerror}).")
    return default


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number inside its bounds."""
    raw = text(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        refuse(name, f"must be a whole number, not {raw!r}.")
    if not low <= value <= high:
        refuse(name, f"must be between {low} and {high}, not {value}.")
    return value


def flag(name: str, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off."""
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    return refuse(name, f"must be 1 or 0, not {raw!r}.")


def names(name: str) -> list[str]:
    """A comma-separated list without blanks."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


# Production unless the embedded default says otherwise: a forgotten variable must not open anything.
MODE = text("GATEWAY_MODE", "production")
if MODE not in {"production", "embedded"}:
    refuse("GATEWAY_MODE", f"must be production or embedded, not {MODE!r}.")
EMBEDDED = MODE == "embedded"
# Beat, migrations and load_vendors serve no requests: a secret that they are not given cannot leak from them.
ROLE = text("GATEWAY_ROLE", "service")
if ROLE not in {"service", "helper"}:
    refuse("GATEWAY_ROLE", f"must be service or helper, not {ROLE!r}.")
HELPER = ROLE == "helper"
