"""Error responses: HTML for browsers, JSON below machine paths."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import error_responses
from gateway.lib.machine_paths import OAUTH_ENDPOINTS, is_for_machines
from gateway.site.error_frame import frame_of

# By status: the code, the title and the advice.
TEXTS = {
    400: ("bad_request", gettext_lazy("We couldn’t read that request"), gettext_lazy("Go back and try again.")),
    402: (
        "subscription_required",
        gettext_lazy("This needs an active plan"),
        gettext_lazy("An owner of the organization can renew it. Everything that was connected keeps working."),
    ),
    403: (
        "forbidden",
        gettext_lazy("You can’t open this page"),
        gettext_lazy("Ask an owner of the organization for the right role."),
    ),
    404: (
        "not_found",
        gettext_lazy("Page not found"),
        gettext_lazy("It may have been removed, or you don’t have access."),
    ),
    405: (
        "method_not_allowed",
        gettext_lazy("That method is not allowed here"),
        gettext_lazy("Go back and use the page’s own buttons."),
    ),
    410: (
        "gone",
        gettext_lazy("No longer available"),
        gettext_lazy("Ask the person who sent you here for a new link."),
    ),
    429: ("rate_limited", gettext_lazy("Too many requests"), gettext_lazy("Wait a minute, then try again.")),
    500: (
        "internal_error",
        gettext_lazy("Something went wrong on our side"),
        gettext_lazy("Try again. If it keeps happening, send support the request ID."),
    ),
    503: (
        "unavailable",
        gettext_lazy("The service is not available right now"),
        gettext_lazy("Your data is safe. Try again in a moment."),
    ),
}


def error_response(
    request: HttpRequest,
    status: int,
    *,
    code: str | None = None,
    message: str | None = None,
    what_to_do: str | None = None,
) -> HttpResponse:
    """The error body for machine paths (D1), otherwise the error page; both carry the request id."""
    # An unlisted status gets the text of 400 or 500.
    known = status if status in TEXTS else 400 if status < 500 else 500
    default_code, title, advice = TEXTS[known]
    if request.path_info in OAUTH_ENDPOINTS:
        return _oauth_response(status)
    if is_for_machines(request.path_info):
        return error_responses.response(request, status, code=code or default_code, message=message or f"{title}.")
    return error_responses.page(
        request,
        status,
        title=str(title),
        message=message or f"{title}.",
        what_to_do=what_to_do or str(advice),
        code=code or default_code,
        frame=frame_of(request, status),
    )


def _oauth_response(status: int) -> HttpResponse:
    """In OAuth's form, and readable from every origin. Spec: D28"""
    answer = JsonResponse(error_responses.oauth_body(status, f"{HTTPStatus(status).phrase}."), status=status)
    answer["Access-Control-Allow-Origin"], answer["Cache-Control"] = "*", "no-store"
    return answer


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return error_response(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW; most often the page was open too long."""
    return error_response(
        request,
        403,
        code="csrf_failed",
        message=gettext("This form has expired."),
        what_to_do=gettext("Go back, reload the page and send it again."),
    )
