"""Variables of a start, without secrets, stored in VAR for later commands. Contract: 6"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.supervisor.child_environment import LEFT_OUT
from gateway.supervisor.folder import write_private
from gateway.supervisor.options import StartRefused, is_given
from gateway.supervisor.secret_store import FILE_NAME as SECRETS_NAME
from gateway.supervisor.secret_store import read_secrets

FILE_NAME = "environment.json"
_SECRET = re.compile(r"(?:^|_)(?:KEYS?|FALLBACKS|SECRET|PASSWORD|TOKEN|CODES)$|^(?:DATABASE|REDIS|EMAIL)_URL$")


@dataclass(frozen=True, slots=True)
class StartVariables:
    """Variables of the last start: `kept` with values, `withheld` (secrets) by name only."""

    kept: Mapping[str, str]
    withheld: tuple[str, ...]


def record_start(folder: Path, environ: Mapping[str, str], names: Iterable[str]) -> None:
    """Store which of `names` this start was given. Secrets are stored by name only, unless the folder made them."""
    own = read_secrets(folder / SECRETS_NAME)
    kept: dict[str, str] = {}
    withheld: list[str] = []
    for name in sorted(names):
        if path := environ.get(f"{name}_FILE"):
            kept[f"{name}_FILE"] = path
        value = environ.get(name, "")
        if not value or own.get(name) == value:
            continue
        if is_secret(name, value):
            withheld.append(name)
        else:
            kept[name] = value
    write_private(folder / FILE_NAME, json.dumps({"kept": kept, "withheld": withheld}, indent=1) + "\n")


def is_secret(name: str, value: str) -> bool:
    """Pure: whether a variable may hold a key, a password or an address with a password."""
    if _SECRET.search(name):
        return True
    try:
        return "://" in value and urlsplit(value).username is not None
    except ValueError:
        return True


def command_environment(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of a command on the installation in `folder`; `environ` wins. Raises: StartRefused."""
    given = {name: value for name, value in environ.items() if name not in LEFT_OUT and name != "ARGS" and value}
    secrets = read_secrets(folder / SECRETS_NAME)
    if not secrets and not all(is_given(environ, name) for name in ("SECRET_KEY", "CREDENTIAL_KEYS")):
        raise StartRefused(
            f"VAR={folder} holds no installation. Start it once with make run, or name its folder: "
            'make manage VAR=/path/to/folder ARGS="..."'
        )
    start = read_start(folder)
    # Without a withheld variable the command would use another database, or its revocations would not reach the running
    # service.
    if missing := [name for name in start.withheld if not is_given(environ, name)]:
        raise StartRefused(
            f"The installation in {folder} was started with {' and '.join(missing)}, which {folder} does not keep. "
            "Give the same to make manage."
        )
    defaults = {"GATEWAY_MODE": "embedded", **secrets, **start.kept}
    environment = given | {name: value for name, value in defaults.items() if not is_given(environ, name)}
    return environment | {"DJANGO_SETTINGS_MODULE": "gateway.settings", "VAR": str(folder)}


def restore_environment(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of `restore`, whose folder has no keys yet."""
    given = {name: value for name, value in environ.items() if name not in LEFT_OUT and name != "ARGS" and value}
    defaults = {"GATEWAY_MODE": "embedded", "GATEWAY_ROLE": "helper"}
    return defaults | given | {"DJANGO_SETTINGS_MODULE": "gateway.settings", "VAR": str(folder)}


def read_start(folder: Path) -> StartVariables:
    """Variables of the last start; empty if an older version started last. Raises: StartRefused for a broken file."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = {str(name): str(value) for name, value in content["kept"].items()}
        return StartVariables(kept=kept, withheld=tuple(str(name) for name in content["withheld"]))
    except FileNotFoundError:
        return StartVariables(kept={}, withheld=())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartRefused(f"{path} cannot be read ({type(error).__name__}). Remove it and start once.") from None
