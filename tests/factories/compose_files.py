"""Reads the files of compose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Knows compose's tag for a value that replaces that of the file before."""


_Loader.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))


def services_of(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.load(path.read_text(), _Loader)["services"]
    return found
