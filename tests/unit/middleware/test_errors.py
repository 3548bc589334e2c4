"""Errors at the top of a page: a domain error in its words, a database that is away as 503, a fault as it is."""

from __future__ import annotations

import json

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import HttpResponse
from django.test import RequestFactory

from gateway.lib.errors import NotFound
from gateway.middleware.errors import DomainErrorMiddleware

DRIVER_TEXT = "server closed the connection: UPDATE account SET secret = 'pl4in'"


def answer(exception: Exception, path: str = "/profile") -> HttpResponse | None:
    """The response to an exception in a view; None if it goes on."""
    return DomainErrorMiddleware(lambda request: HttpResponse()).process_exception(
        RequestFactory().get(path), exception
    )


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_a_database_that_is_away_is_a_page_that_says_when_to_come_back(kind: type[Exception]) -> None:
    response = answer(kind(DRIVER_TEXT))
    assert response is not None
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert b"not available right now" in response.content
    assert b"pl4in" not in response.content


def test_a_machine_gets_json() -> None:
    response = answer(OperationalError(DRIVER_TEXT), "/api/orgs")
    assert response is not None
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert json.loads(response.content)["error"] == "unavailable"


def test_a_domain_error_keeps_its_words() -> None:
    response = answer(NotFound(), "/api/orgs")
    assert response is not None
    assert (response.status_code, json.loads(response.content)["error"]) == (404, "not_found")


@pytest.mark.parametrize("fault", [ProgrammingError("no such column"), ValueError("a fault of ours")])
def test_faults_of_ours_stay_what_they_are(fault: Exception) -> None:
    assert answer(fault) is None
