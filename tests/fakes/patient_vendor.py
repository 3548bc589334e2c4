"""A vendor whose calls say how long they take: the argument `takes_s`, in seconds."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.fakes.vendor import FakeVendor


class PatientVendor(FakeVendor):
    """`under_way`: the calls that it has got and not answered."""

    under_way = 0

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        takes_s = body.get("params", {}).get("arguments", {}).get("takes_s", 0)
        self.under_way += 1
        try:
            await asyncio.sleep(takes_s)
        finally:
            self.under_way -= 1
        return await super()._answer(request, body)
