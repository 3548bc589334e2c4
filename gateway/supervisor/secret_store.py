"""VAR/secrets.env: secrets generated at the first start and read at every later one."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.supervisor.folder import write_private
from gateway.supervisor.options import StartRefused, is_given

FILE_NAME = "secrets.env"
HEADER = (
    "# Made at the first start; keep it with the database: without CREDENTIAL_KEYS stored credentials do not open.\n"
)
MAKERS: Mapping[str, Callable[[], str]] = {
    "SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "CREDENTIAL_KEYS": lambda: "first:" + base64.b64encode(secrets.token_bytes(32)).decode(),
    "OIDC_RP_CLIENT_SECRET": lambda: secrets.token_urlsafe(32),
}


def parse_secrets(text: str) -> dict[str, str]:
    """Pure: the NAME=value lines of a secrets file. Raises: ValueError with the number of an invalid line."""
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip().isidentifier():
            raise ValueError(f"line {number} is not NAME=value")
        values[name.strip()] = value.strip()
    return values


def load_secrets(folder: Path, environ: Mapping[str, str], *, has_database: bool) -> dict[str, str]:
    """Stored secrets that `environ` does not set; missing ones are generated and stored. Raises: StartRefused."""
    path = folder / FILE_NAME
    stored = read_secrets(path)
    missing = [name for name in MAKERS if name not in stored and not is_given(environ, name)]
    # Never replace lost keys of an existing database: its credentials would stay closed for good.
    if "CREDENTIAL_KEYS" in missing and has_database:
        raise StartRefused(
            f"{path} with CREDENTIAL_KEYS is missing, but {folder} holds a database whose credentials need it. "
            "Restore the file, set CREDENTIAL_KEYS, or start afresh in another folder: make run VAR=./var2"
        )
    if missing:
        stored |= {name: MAKERS[name]() for name in missing}
        write_private(path, HEADER + "".join(f"{name}={value}\n" for name, value in stored.items()))
    return {name: value for name, value in stored.items() if not is_given(environ, name)}


def read_secrets(path: Path) -> dict[str, str]:
    """The content of a secrets file; empty without a file. Raises: StartRefused."""
    try:
        if path.exists() and path.stat().st_mode & 0o077:
            # A copied file may have become readable for others.
            path.chmod(0o600)
        return parse_secrets(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StartRefused(f"{path} cannot be read ({error}). Correct it or restore it from a copy.") from None
