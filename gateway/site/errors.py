"""Error responses: HTML for browsers, JSON below machine paths."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from gateway.lib import error_responses

# Paths of clients that read JSON.
_MACHINE_PREFIXES = ("/api/", "/oauth/", "/.well-known/", "/v1/")
_PERSON_PREFIXES = ("/oauth/authorize",)  # shown to people in a browser
_TEXTS = {
    400: ("bad_request", "That request could not be read", "Go back and try again."),
    402: (
        "subscription_required",
        "This needs an active plan",
        "An owner of the organization can renew it. Everything that was connected keeps working.",
    ),
    403: ("forbidden", "You may not open this page", "Ask an owner of the organization for the role it needs."),
    404: ("not_found", "There is nothing here", "It may have been removed, or it belongs to another organization."),
    405: ("method_not_allowed", "That method is not allowed here", "Go back and use the page's own buttons."),
    410: ("gone", "This has ended", "Ask whoever sent you here for a new link."),
    429: ("rate_limited", "That was too often", "Wait a minute, then try again."),
    500: ("internal_error", "Something went wrong on our side", "Try again. If it stays, tell support the request id."),
    503: ("unavailable", "The service is not available right now", "Your data is safe. Try again in a moment."),
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
    known = status if status in _TEXTS else 400 if status < 500 else 500
    default_code, title, advice = _TEXTS[known]
    if request.path_info.startswith(_MACHINE_PREFIXES) and not request.path_info.startswith(_PERSON_PREFIXES):
        return error_responses.response(request, status, code=code or default_code, message=message or f"{title}.")
    return error_responses.page(
        request, status, title=title, message=message or f"{title}.", what_to_do=what_to_do or advice
    )


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
        message="This form has expired.",
        what_to_do="Go back, reload the page and send it again.",
    )
