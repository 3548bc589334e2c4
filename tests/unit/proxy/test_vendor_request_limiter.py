"""Only some of a process's threads wait for vendors, and of one organization only a few."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack

import pytest
from django.conf import settings

from proxy.vendor_request_limiter import TooManyVendorRequests, VendorRequestLimiter

ACME, GLOBEX = uuid.UUID(int=1), uuid.UUID(int=2)


def asked(size: int, per_organization: int) -> VendorRequestLimiter:
    return VendorRequestLimiter(size=size, per_organization=per_organization, before_waiting=lambda: None)


def is_free(questions: VendorRequestLimiter, organization_id: uuid.UUID) -> bool:
    try:
        with questions.place(organization_id):
            return True
    except TooManyVendorRequests:
        return False


def test_one_organization_leaves_places_to_others() -> None:
    questions = asked(3, 2)
    with questions.place(ACME), questions.place(ACME):
        assert not is_free(questions, ACME)
        with questions.place(GLOBEX):
            assert not is_free(questions, uuid.UUID(int=3))
        assert is_free(questions, GLOBEX)
    assert is_free(questions, ACME)
    assert not questions._asking


def test_a_question_that_fails_gives_its_place_back() -> None:
    questions = asked(1, 1)
    with pytest.raises(OSError, match="away"), questions.place(ACME):
        raise OSError("the vendor is away")
    assert is_free(questions, ACME)


def test_many_threads_find_no_place_too_many() -> None:
    questions = asked(8, 2)
    held, refused = ExitStack(), []
    together = threading.Barrier(50)
    lock = threading.Lock()

    def ask(number: int) -> None:
        together.wait(timeout=30)
        try:
            place = questions.place(uuid.UUID(int=number % 10 + 1))
            place.__enter__()
        except TooManyVendorRequests:
            refused.append(number)
        else:
            with lock:
                held.push(place)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    with held:
        assert len(refused) == 42
        assert questions._asking.total() == 8
        assert max(questions._asking.values()) <= 2
    assert not questions._asking


def test_pages_keep_most_of_their_room() -> None:
    assert max(1, settings.PAGE_CONCURRENCY // 4) >= settings.CONCURRENT_VENDOR_REQUESTS
    assert settings.CONCURRENT_VENDOR_REQUESTS_OF_ORGANIZATION < settings.CONCURRENT_VENDOR_REQUESTS
