"""Every declared package is used by the product, and every package that the product imports is declared."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.product import PACKAGES

pytestmark = pytest.mark.one_back_end
ROOT = Path(__file__).resolve().parents[2]
# Files of requirements, and their locks.
LOCKS = {"runtime": "requirements.lock", "aws": "requirements-aws.lock"}
# Packages that are loaded by name: the module, and the file that names it.
LOADED_BY_NAME = {
    "django-htmx": ("django_htmx", "gateway/settings/base.py"),
    "uvloop": ("uvloop", "gateway/supervisor/services.py"),
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(*names: str) -> set[str]:
    """The packages of requirements/NAME.in; without a name those of all files that the product may need."""
    files = [ROOT / "requirements" / f"{name}.in" for name in names or LOCKS]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {normal(re.split(r"[\[<>=!~ ]", line)[0]) for line in lines if line and not line.startswith("#")}


def modules_of(source: str) -> set[str]:
    """The top-level modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def imported() -> set[str]:
    """The packages behind all foreign modules that the product imports."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    modules = set[str]().union(*(modules_of(file.read_text()) for file in files))
    packages = packages_distributions()
    # The demo has requirements of its own.
    foreign = modules - {*PACKAGES, "demo", *sys.stdlib_module_names}
    found: set[str] = set()
    for module in foreign:
        # Several packages may share the top-level name of their modules.
        behind = {normal(name) for name in packages[module]}
        found |= (behind & declared()) or {normal(packages[module][0])}
    return found


def test_imported_packages_are_declared_and_declared_ones_are_imported() -> None:
    assert imported() == declared() - LOADED_BY_NAME.keys()


@pytest.mark.parametrize("package", LOADED_BY_NAME)
def test_a_package_that_is_loaded_by_name_is_named(package: str) -> None:
    module, file = LOADED_BY_NAME[package]
    assert package in declared()
    assert re.search(rf'"{module}["./]', (ROOT / file).read_text())


def test_imports_are_found_anywhere_in_a_file() -> None:
    source = "import a.b\nfrom c.d import e\nfrom . import f\ndef late():\n    import g as h, i\n"
    assert modules_of(source) == {"a", "c", "g", "i"}


def pinned(lock: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", (ROOT / lock).read_text(), flags=re.M)
    return {normal(name): version for name, version in found}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_every_declared_package(name: str) -> None:
    assert declared(name) <= pinned(LOCKS[name]).keys()


def test_an_optional_part_brings_no_other_version_of_a_package() -> None:
    service, optional = pinned(LOCKS["runtime"]), pinned(LOCKS["aws"])
    assert {name: optional[name] for name in service.keys() & optional.keys()} == {
        name: service[name] for name in service.keys() & optional.keys()
    }
