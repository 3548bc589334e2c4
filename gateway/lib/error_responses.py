from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from gateway.lib import error_help


def body(code: str, message: str, request_id: str) -> dict[str, Any]:
    """The documented JSON body, to which some refusals add members. Spec: D1"""
    return {"error": code, "message": message, "requestId": request_id}


def oauth_body(status: int, description: str) -> dict[str, Any]:
    """The body of an OAuth endpoint that could not ask its view. `description` is ASCII. Spec: RFC 6749 5.2"""
    errors = {503: "temporarily_unavailable", 500: "server_error"}
    return {"error": errors.get(status, "invalid_request"), "error_description": description}


def response(request: HttpRequest, status: int, *, code: str, message: str) -> HttpResponse:
    headers = {"Link": error_help.link(code)}
    return JsonResponse(body(code, message, getattr(request, "request_id", "")), status=status, headers=headers)


def page(
    request: HttpRequest,
    status: int,
    *,
    title: str,
    message: str,
    what_to_do: str,
    code: str = "",
    frame: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """The error page. It offers to try again for 429 and 5xx, and leads to the entry of a code.

    `frame`: context of an organization's frame around it.
    """
    context = {
        **(frame or {}),
        "title": title,
        "message": message,
        "what_to_do": what_to_do,
        "request_id": getattr(request, "request_id", ""),
        "status": status,
        "code_url": f"{error_help.PATH}#{code}" if code else "",
        "may_try_again": status == 429 or status >= 500,
    }
    return render(request, "errors/framed.html" if frame else "errors/error.html", context, status=status)
