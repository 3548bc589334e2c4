"""`make audit`: known vulnerabilities of the pinned packages, asked of OSV (https://osv.dev) by name and version.

Exit codes: 0 none, 1 found, 3 the service could not be asked. `OSV_URL` names another instance.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OSV_URL = "https://api.osv.dev"
TIMEOUT_S = 30
AT_ONCE = 500  # the service takes 1,000
FOUND, NOT_ASKED = 1, 3
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[a-z0-9,-]+\])?==([^\s;\\]+)")

Package = tuple[str, str]


class NotAsked(Exception):
    """The service did not answer, or not as it should."""


def pinned(text: str) -> set[Package]:
    """Pure: name and version of each package in a lock file."""
    return {(found[1].lower(), found[2]) for line in text.splitlines() if (found := _PIN.match(line))}


def advisories(packages: Sequence[Package], url: str) -> dict[Package, list[str]]:
    """The ids of known vulnerabilities by package; a package without any is absent.

    Raises: NotAsked.
    """
    known: dict[Package, list[str]] = {}
    for portion in _portions(packages):
        for package, result in zip(portion, _asked(portion, url), strict=True):
            ids = [str(each.get("id")) for each in result.get("vulns", [])]
            if ids:
                known[package] = ids
    return known


def _asked(packages: Sequence[Package], url: str) -> list[dict[str, Any]]:
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in packages]
    request = urllib.request.Request(  # noqa: S310 - the address is the operator's
        f"{url}/v1/querybatch", json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            results = json.load(answer)["results"]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise NotAsked(f"{type(fault).__name__}: {fault}") from fault
    if not isinstance(results, list) or len(results) != len(packages) or not all(map(_is_object, results)):
        raise NotAsked("The service answered something else than was asked.")
    return results


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _portions(packages: Sequence[Package]) -> Iterator[Sequence[Package]]:
    for start in range(0, len(packages), AT_ONCE):
        yield packages[start : start + AT_ONCE]


def report(known: dict[Package, list[str]], files: Iterable[str]) -> str:
    """Pure: the report as text."""
    where = ", ".join(files)
    if not known:
        return f"No known vulnerability in {where}."
    lines = [f"{name} {version}: {', '.join(ids)}" for (name, version), ids in sorted(known.items())]
    return "\n".join([f"Known vulnerabilities in {where}:", *(f"  {line}" for line in lines)])


def main() -> int:
    """Ask about every lock file of the project."""
    files = sorted(ROOT.glob("requirements*.lock"))
    packages = sorted({package for file in files for package in pinned(file.read_text(encoding="utf-8"))})
    if not packages:
        print("There is no lock file.")
        return NOT_ASKED
    try:
        known = advisories(packages, os.environ.get("OSV_URL") or OSV_URL)
    except NotAsked as fault:
        print(f"The {len(packages)} packages were not audited: {fault}")
        return NOT_ASKED
    print(report(known, (file.name for file in files)))
    return FOUND if known else 0


if __name__ == "__main__":
    sys.exit(main())
