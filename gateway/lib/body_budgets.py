"""The byte budgets of an event loop: request bodies of callers, bodies of pages, and vendors' answers.

They are separate: a call that holds its request's bytes never waits for the bytes of other requests or of pages.
"""

from __future__ import annotations

import asyncio
import weakref

from django.conf import settings

from gateway.lib.byte_budget import ByteBudget

_ByLoop = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ByteBudget]
_inbound: _ByLoop = weakref.WeakKeyDictionary()
_pages: _ByLoop = weakref.WeakKeyDictionary()
_vendors: _ByLoop = weakref.WeakKeyDictionary()


def inbound() -> ByteBudget:
    """Request bodies of authenticated callers, until the request is answered."""
    return _of_loop(_inbound, settings.INBOUND_BYTES, settings.INBOUND_BYTES_RESERVED, settings.MCP_BODY_BYTES)


def pages() -> ByteBudget:
    """Bodies of pages and /api, which are read before authentication."""
    return _of_loop(_pages, settings.PAGE_BYTES, settings.PAGE_BYTES_RESERVED, settings.WEB_BODY_BYTES)


def vendors() -> ByteBudget:
    """Vendors' answers, until the caller has received them."""
    return _of_loop(_vendors, settings.VENDOR_BYTES, settings.VENDOR_BYTES_RESERVED, settings.VENDOR_REPLY_BYTES)


def _of_loop(known: _ByLoop, total: int, reserve: int, largest: int) -> ByteBudget:
    loop = asyncio.get_running_loop()
    found = known.get(loop)
    if found is None:
        wait_s = settings.LARGE_BODY_WAIT_S
        found = known[loop] = ByteBudget(total=total, reserve=reserve, largest=largest, wait_s=wait_s)
    return found
