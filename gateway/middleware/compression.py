"""gzip of pages and of static files that are not packed already.   docs/decisions/0061"""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# Pages of an organization, documentation, and what they load. Sign-in, consent, invitations and device approval stay as
# they are: they are small, and their addresses or bodies hold values that grant something.
COMPRESSED_PATHS = ("/static/", "/orgs/", "/docs/", "/profile")
COMPRESSED_TYPES = frozenset(("text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml"))


class CompressionMiddleware(GZipMiddleware):
    """A secret that is shown once is in the answer to a POST, and those are never compressed."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not is_compressible(request, response):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


def is_compressible(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether an observer may learn from the size of the answer how well it packs."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
    return (
        request.method == "GET"
        and response.status_code == 200
        and kind in COMPRESSED_TYPES
        and request.path_info.startswith(COMPRESSED_PATHS)
    )
