"""GET /docs, /docs/search and each document. Public."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

# Longer questions are cut.
MAX_QUERY = 200


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Where help is: guides, references and all documents."""
    return in_frame(request, "site/docs.html", {"page_title": gettext("Help")})


@require_safe
def document(request: HttpRequest, document: str) -> HttpResponse:
    """Raises: Http404."""
    # Imported at the first visit: the parser is needed for nothing else.
    from gateway.site.help.library import library

    found = library().find(document)
    if found is None:
        raise Http404
    before, after = library().neighbours(found)
    context = {
        "page_title": found.title,
        "title_language": "en",
        "document": found,
        "parts": [each for each in found.content.headings if each.level == 2],
        "before": before,
        "after": after,
    }
    return in_frame(request, "site/document.html", context)


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """The parts of documents that have the words of `q`, best first."""
    from gateway.site.help.search import index

    query = request.GET.get("q", "").strip()[:MAX_QUERY]
    context = {"page_title": gettext("Search the documents"), "query": query, "hits": index().find(query)}
    return in_frame(request, "site/docs_search.html", context)


def in_frame(request: HttpRequest, template: str, context: Mapping[str, object]) -> HttpResponse:
    """A page beside the list of all documents."""
    from gateway.site.help.library import library

    return render(request, template, {"groups": library().groups, **context})
