"""The two shapes of a refusal: a body for machines, a page for people. Whoever refuses says what it says."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render


def body(code: str, message: str, request_id: str) -> dict[str, Any]:
    """The documented body, to which some refusals add members. Spec: D1"""
    return {"error": code, "message": message, "requestId": request_id}


def answer(request: HttpRequest, status: int, *, code: str, message: str) -> HttpResponse:
    """The body as an answer."""
    return JsonResponse(body(code, message, getattr(request, "request_id", "")), status=status)


def page(request: HttpRequest, status: int, *, title: str, message: str, what_to_do: str) -> HttpResponse:
    """The error page; where it may help it offers to try again."""
    context = {
        "title": title,
        "message": message,
        "what_to_do": what_to_do,
        "request_id": getattr(request, "request_id", ""),
        "status": status,
        "may_try_again": status == 429 or status >= 500,
    }
    return render(request, "errors/error.html", context, status=status)
