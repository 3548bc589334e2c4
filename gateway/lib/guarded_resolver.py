"""`gateway.lib.outbound` for aiohttp. A module of its own: aiohttp takes 8 MB, and calls do without it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from gateway.lib.outbound import AddressRefused, may_connect


class GuardedResolver(AbstractResolver):
    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises: AddressRefused; OSError from the resolver."""
        found = await self._resolver.resolve(host, port, family)
        self._check(found)
        return found

    def _check(self, found: Sequence[ResolveResult]) -> None:
        # One forbidden address refuses the name.
        if not found or not all(may_connect(one["host"], allow_private=self._allow_private) for one in found):
            raise AddressRefused

    async def close(self) -> None:
        await self._resolver.close()
