"""A backup is restored into an empty database: the same calls are served, and the ended stay ended."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.deployment_data import Template
from tests.faults import restored_database

pytest_plugins = ("tests.e2e.fixtures",)


def test_a_restored_database_lets_in_what_works_and_nothing_that_ended(template: Template, tmp_path: Path) -> None:
    drill = restored_database.run(template, tmp_path)
    assert restored_database.faults(drill) == []
    assert "agent keys: 1 ended\n" in drill.said
    assert "organizations: 1 ended\n" in drill.said
    assert "sessions: 1 ended\n" in drill.said
