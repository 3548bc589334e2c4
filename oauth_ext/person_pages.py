"""Responses to a person during an authorization: an error page, or the redirect to the app."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import error_responses

START_AGAIN = gettext_lazy("Go back to your app and connect it again.")


def error_page(
    request: HttpRequest, status: int, message: str, what_to_do: str | Promise = START_AGAIN
) -> HttpResponse:
    """A page without any redirect: the sender of a faulty request is unknown."""
    title = gettext("This app can’t be connected")
    return error_responses.page(request, status, title=title, message=message, what_to_do=str(what_to_do))


def back_to_client(location: str) -> HttpResponse:
    """Redirects with 302 to a registered and checked address."""
    response = HttpResponse(status=302)
    # Django's HttpResponseRedirect refuses the schemes of apps.
    response["Location"] = location
    return response
