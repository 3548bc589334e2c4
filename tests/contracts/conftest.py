"""The API's fixtures, for contracts about the API; and the order of contracts in a run of the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.conftest import api, lapsed  # noqa: F401

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put contracts first. The longest tests of the suite are theirs.

    At the end of a parallel run one process would go through several of them while the others have nothing left to do.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(HERE))
