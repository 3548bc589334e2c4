"""The budgets of an event loop: bodies of calls, bodies of pages, and answers of vendors on their way out.

They are apart, so that a call that keeps its arguments never waits for bytes that calls like it keep, nor for those of
strangers.
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
    """Bodies of callers that are known, while they are read or worked on."""
    return _of_loop(_inbound, settings.INBOUND_BYTES, settings.INBOUND_BYTES_OF_ONE)


def pages() -> ByteBudget:
    """Bodies of pages and /api, which are read before their sender is known."""
    return _of_loop(_pages, settings.PAGE_BYTES, settings.PAGE_BYTES_OF_ONE)


def vendors() -> ByteBudget:
    """Answers of vendors, from their first bytes until the caller has taken them."""
    return _of_loop(_vendors, settings.VENDOR_BYTES, settings.VENDOR_BYTES_OF_ONE)


def _of_loop(known: _ByLoop, total: int, share: int) -> ByteBudget:
    loop = asyncio.get_running_loop()
    found = known.get(loop)
    if found is None:
        found = known[loop] = ByteBudget(total=total, share=share, wait_s=settings.LARGE_BODY_WAIT_S)
    return found
