"""The person in front of a client program. Nothing but the standard library: every virtual environment runs this."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

REDIRECT_URI = "http://127.0.0.1:43118/callback"
DEADLINE_S = 30.0


class Answer:
    """The answer of the authorization server after the person allowed the program."""

    def __init__(self) -> None:
        self._fields: dict[str, list[str]] = {}

    async def ask(self, url: str) -> None:
        """The person opens the address, signs in and allows."""
        command = (os.environ["BROWSER_PYTHON"], "-m", "tests.clients.browser", "allow", url)
        browser = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        printed, _ = await asyncio.wait_for(browser.communicate(), DEADLINE_S)
        if browser.returncode != 0:
            raise RuntimeError(f"the browser ended with {browser.returncode}")
        self._fields = parse_qs(urlsplit(printed.decode().strip()).query)

    def field(self, name: str) -> str | None:
        """A parameter of the answer."""
        return self._fields.get(name, [None])[0]  # type: ignore[list-item]


class MemoryStorage:
    """Tokens and client of one run; the SDKs of both generations call the same four functions."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        """None before the first sign-in."""
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        """Called after every answer of the token endpoint."""
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        """None before registration."""
        return self.client

    async def set_client_info(self, client: Any) -> None:
        """Called after registration."""
        self.client = client


def report(**seen: Any) -> None:
    """The last line of a program: what it saw."""
    sys.stdout.write(json.dumps(seen) + "\n")
