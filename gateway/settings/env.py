"""Readers for environment variables. NAME_FILE may name a file with the value (container secrets)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import environ

from gateway.lib.variables import given

BASE_DIR = Path(__file__).resolve().parent.parent.parent
reader = environ.Env()
# Every variable that a setting read, set or not: `make run` records them for later commands.
names_read: set[str] = set()


def refuse(name: str, what: str) -> NoReturn:
    """Exit with one line that names the variable; a traceback would hide it. Contract: 5"""
    sys.stderr.write(f"Cannot start: {name} {what}\n")
    sys.exit(78)  # EX_CONFIG


def text(name: str, default: str = "") -> str:
    """The variable, else the content of the file in NAME_FILE, else the default."""
    names_read.add(name)
    try:
        return given(name) or default
    except OSError as fault:
        refuse(f"{name}_FILE", f"names a file that cannot be read ({fault.strerror}).")


def integer(name: str, default: int, *, low: int, high: int) -> int:
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
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    return refuse(name, f"must be 1 or 0, not {raw!r}.")


def names(name: str) -> list[str]:
    """A comma-separated list; empty items are dropped."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


# Production by default, so that a forgotten variable opens nothing.
MODE = text("GATEWAY_MODE", "production")
if MODE not in {"production", "embedded"}:
    refuse("GATEWAY_MODE", f"must be production or embedded, not {MODE!r}.")
EMBEDDED = MODE == "embedded"
# helper: beat, migrations and load_vendors serve no requests, so they run without secrets that could leak.
ROLE = text("GATEWAY_ROLE", "service")
if ROLE not in {"service", "helper"}:
    refuse("GATEWAY_ROLE", f"must be service or helper, not {ROLE!r}.")
HELPER = ROLE == "helper"
