"""Scratch databases for tests: `pytest_plugins = ("tests.faults.fixtures",)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.faults.scratch_database import AuditTemplate, NewScratch, ScratchDatabase, scratch_database

pytest_plugins = ("tests.e2e.fixtures",)


@pytest.fixture(scope="session")
def new_scratch(run_folder: Path) -> Iterator[NewScratch]:
    """Makes a scratch database: its back end, one of BACKENDS, and a folder of its own."""
    templates: dict[str, AuditTemplate] = {}
    with ExitStack() as stack:

        def make(backend: str, folder: Path) -> AbstractContextManager[ScratchDatabase]:
            if backend not in templates:
                templates[backend] = AuditTemplate(backend, run_folder)
                stack.callback(templates[backend].remove)
            return scratch_database(templates[backend], folder)

        yield make
