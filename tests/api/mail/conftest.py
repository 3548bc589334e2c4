from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes import smtp_server
from tests.fakes.smtp_server import Mailbox


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with smtp_server.running(settings) as mailbox:
        yield mailbox
