"""The judgement of gateway.lib.outbound in aiohttp. Apart from it: the library takes 8 MB, and calls do without."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from gateway.lib.outbound import AddressRefused, may_connect


class GuardedResolver(AbstractResolver):
    """aiohttp's resolver with the judgement in between: one bad answer refuses the name."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve and judge.

        Raises: AddressRefused; OSError from the resolver.
        """
        found = await self._resolver.resolve(host, port, family)
        self._judge(found)
        return found

    def _judge(self, found: Sequence[ResolveResult]) -> None:
        if not found or not all(may_connect(one["host"], allow_private=self._allow_private) for one in found):
            raise AddressRefused

    async def close(self) -> None:
        """Nothing is kept."""
        await self._resolver.close()
