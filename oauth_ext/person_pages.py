"""Responses to a person during an authorization: an error page, or the redirect to the app."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from gateway.lib import error_responses

START_AGAIN = "Go back to your app and connect it again."


def error_page(request: HttpRequest, status: int, message: str, what_to_do: str = START_AGAIN) -> HttpResponse:
    """A page without any redirect: the sender of a faulty request is unknown."""
    title = "This app cannot be connected"
    return error_responses.page(request, status, title=title, message=message, what_to_do=what_to_do)


def back_to_client(location: str) -> HttpResponse:
    """Redirects with 302 to a registered and checked address."""
    response = HttpResponse(status=302)
    # Django's HttpResponseRedirect refuses the schemes of apps.
    response["Location"] = location
    return response
