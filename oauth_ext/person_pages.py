"""Answers to a person in the middle of an authorization: an error page, or the way back to the app."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from gateway.lib import error_answers

START_AGAIN = "Go back to your app and connect it again."


def error_page(request: HttpRequest, status: int, message: str, what_to_do: str = START_AGAIN) -> HttpResponse:
    """A page that sends nobody anywhere: what is wrong was not sent by somebody we know."""
    title = "This app cannot be connected"
    return error_answers.page(request, status, title=title, message=message, what_to_do=what_to_do)


def back_to_client(location: str) -> HttpResponse:
    """302 to an address that was registered and checked; Django's own class knows no apps' schemes."""
    response = HttpResponse(status=302)
    response["Location"] = location
    return response
