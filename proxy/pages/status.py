"""The public status page, its JSON and its feed: parts and incidents, and nothing of any organization."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.feedgenerator import Atom1Feed
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_safe

from gateway.lib import build_info, clock
from gateway.web.signed_in import signed_in
from proxy.pages.status_board import Board, IncidentRow, board
from proxy.pages.status_document import document

FRESH_S = 30  # in caches; the schedule samples each minute
Shown = Callable[[HttpRequest, Board], HttpResponse]


@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """GET /status. A signed-in person sees the vendors of their organizations by name too.   Spec: §3"""
    person = signed_in(request) if request.user.is_authenticated else None
    found = board(clock.now(), person)
    answer: HttpResponse | None = None
    # The frame of a signed-in person changes with more than the board.
    tag = "" if person else _tag(found, get_language(), request.COOKIES.get(settings.CSRF_COOKIE_NAME, ""))
    if tag:
        answer = get_conditional_response(request, etag=tag)
    if answer is None:
        context = {"page_title": gettext("Status"), "board": found, "feed": _feed_url()}
        answer = render(request, "proxy/status.html", context)
    if tag:
        # The page has a form with a token of this browser: no shared cache may keep it.
        answer["ETag"], answer["Cache-Control"] = tag, "private, no-cache"
        patch_vary_headers(answer, ("Cookie", "Accept-Language"))
    return answer


def _public(view: Shown) -> Callable[[HttpRequest], HttpResponse]:
    """The same for everyone, in English, from the answers of any cache."""

    @require_safe
    @wraps(view)
    def shown(request: HttpRequest) -> HttpResponse:
        found = board(clock.now(), None)
        tag = _tag(found)
        answer = get_conditional_response(request, etag=tag) or view(request, found)
        answer["ETag"], answer["Cache-Control"] = tag, f"public, max-age={FRESH_S}"
        answer["Access-Control-Allow-Origin"] = "*"
        return answer

    return shown


@_public
def status_json(request: HttpRequest, found: Board) -> HttpResponse:
    """GET /status.json"""
    return JsonResponse(document(found))


@_public
def status_feed(request: HttpRequest, found: Board) -> HttpResponse:
    """GET /status.atom: one entry for each incident, with its updates."""
    feed = Atom1Feed(
        title="Gateway status",
        link=_absolute(reverse("proxy_pages:status")),
        description="Incidents and maintenance",
        feed_url=_absolute(_feed_url()),
        language="en",
    )
    for each in (*found.planned, *found.open, *found.past):
        address = _absolute(f"{reverse('proxy_pages:status')}#incident-{each.id}")
        feed.add_item(
            title=each.title,
            link=address,
            description="\n\n".join(_lines(each)),
            unique_id=f"urn:uuid:{each.id}",
            pubdate=each.starts_at,
            updateddate=each.updates[0].posted_at,
        )
    return HttpResponse(feed.writeString("utf-8"), content_type="application/atom+xml; charset=utf-8")


def _lines(incident: IncidentRow) -> Sequence[str]:
    return [f"{clock.rfc3339(each.posted_at)} {each.stage.value}: {each.text}" for each in incident.updates]


def _feed_url() -> str:
    return reverse("proxy_pages:status-feed")


def _absolute(path: str) -> str:
    return f"{settings.BASE_URL}{path}"


def _tag(found: Board, *more: str | None) -> str:
    """Changes with what is shown, and with the release."""
    what: tuple[Mapping[str, Any], Any, Any] = (document(found), build_info.current().labels(), more)
    return f'"{hashlib.sha256(json.dumps(what, sort_keys=True, default=_as_text).encode()).hexdigest()[:32]}"'


def _as_text(value: object) -> str:
    return clock.rfc3339(value) if isinstance(value, datetime) else str(value)
