"""`manage make_env BASE_URL`: the file .env of a new deployment, with fresh secrets, on standard output.

It runs before there are settings, so manage.py calls it without Django.
"""

from __future__ import annotations

import re
import secrets
import string
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gateway.supervisor.secret_store import MAKERS

EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"
# compose.yaml puts these into addresses, where other signs would need an encoding. 40 of them carry 238 bits.
LETTERS = string.ascii_letters + string.digits
PASSWORDS = ("POSTGRES_PASSWORD", "REDIS_PASSWORD")
USAGE = "usage: manage make_env https://gateway.example.com > .env\n"


def password() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(40))


def made_values(base_url: str) -> dict[str, str]:
    """Each variable of .env.example that need not be asked for."""
    makers: Mapping[str, Callable[[], str]] = {
        "SECRET_KEY": MAKERS["SECRET_KEY"],
        "CREDENTIAL_KEYS": MAKERS["CREDENTIAL_KEYS"],
        **dict.fromkeys(PASSWORDS, password),
    }
    return {"BASE_URL": base_url} | {name: make() for name, make in makers.items()}


def filled(example: str, values: Mapping[str, str]) -> str:
    """Pure: `example` with `values` behind the names that have none."""
    return re.sub(r"^([A-Z_]+)=$", lambda line: f"{line[1]}={values.get(line[1], '')}", example, flags=re.MULTILINE)


def is_base_url(text: str) -> bool:
    """Pure: whether `text` is https, a host, perhaps a port, and no more."""
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and text == f"https://{parts.netloc}" and "@" not in parts.netloc
    except ValueError:
        return False


def main(arguments: list[str]) -> int:
    """Write the file. Exit code 2 and one line on standard error when the address is missing or wrong."""
    if len(arguments) != 1 or not is_base_url(arguments[0]):
        sys.stderr.write(USAGE)
        return 2
    sys.stdout.write(filled(EXAMPLE.read_text(encoding="utf-8"), made_values(arguments[0])))
    return 0
