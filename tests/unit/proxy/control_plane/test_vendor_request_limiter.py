"""Only some of a process's threads wait for vendors, and of one organization only a few."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack
from functools import partial

import pytest
from django.conf import settings

from proxy.control_plane.vendor_request_limiter import TooManyVendorRequests, VendorRequestLimiter
from tests.factories.races import at_once

ACME, GLOBEX = uuid.UUID(int=1), uuid.UUID(int=2)


def asked(size: int, per_organization: int) -> VendorRequestLimiter:
    return VendorRequestLimiter(size=size, per_organization=per_organization, before_waiting=lambda: None)


def is_free(vendor_requests: VendorRequestLimiter, organization_id: uuid.UUID) -> bool:
    try:
        with vendor_requests.slot(organization_id):
            return True
    except TooManyVendorRequests:
        return False


def test_one_organization_leaves_slots_to_others() -> None:
    vendor_requests = asked(3, 2)
    with vendor_requests.slot(ACME), vendor_requests.slot(ACME):
        assert not is_free(vendor_requests, ACME)
        with vendor_requests.slot(GLOBEX):
            assert not is_free(vendor_requests, uuid.UUID(int=3))
        assert is_free(vendor_requests, GLOBEX)
    assert is_free(vendor_requests, ACME)
    assert not vendor_requests.slots.taken


def test_a_request_that_fails_releases_its_slot() -> None:
    vendor_requests = asked(1, 1)
    with pytest.raises(OSError, match="away"), vendor_requests.slot(ACME):
        raise OSError("the vendor is away")
    assert is_free(vendor_requests, ACME)


def test_many_threads_get_no_slot_too_many() -> None:
    vendor_requests = asked(8, 2)
    held, lock = ExitStack(), threading.Lock()

    def ask(number: int) -> None:
        slot = vendor_requests.slot(uuid.UUID(int=number % 10 + 1))
        slot.__enter__()
        with lock:
            held.push(slot)

    results = at_once(*[partial(ask, number) for number in range(50)])
    refused = [result for result in results if result is not None]
    with held:
        assert [type(fault) for fault in refused] == [TooManyVendorRequests] * 42
        assert vendor_requests.slots.taken.total() == 8
        assert max(vendor_requests.slots.taken.values()) <= 2
    assert not vendor_requests.slots.taken


def test_pages_keep_most_of_their_threads() -> None:
    assert max(1, settings.PAGE_CONCURRENCY // 4) >= settings.CONCURRENT_VENDOR_REQUESTS
    assert settings.CONCURRENT_VENDOR_REQUESTS_OF_ORGANIZATION < settings.CONCURRENT_VENDOR_REQUESTS
