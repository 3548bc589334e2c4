"""Pure: header names that the catalog may set on a vendor call."""

import re

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")  # RFC 9110 §5.6.2
# Framing, routing and protocol headers are the transport's own: a catalog entry that set them could smuggle a second
# request, answer for another host or speak another protocol version than the session was opened with.
_OURS = frozenset(
    (
        "accept accept-charset accept-encoding authority connection content-encoding content-length content-location "
        "content-range content-type cookie cookie2 date expect forwarded host http2-settings if-match if-none-match "
        "keep-alive last-event-id max-forwards origin range referer set-cookie te traceparent tracestate trailer "
        "transfer-encoding upgrade user-agent via x-http-method-override x-real-ip x-request-id"
    ).split()
)
_OUR_PREFIXES = ("access-control-", "mcp-", "proxy-", "sec-", "x-forwarded-")


def header_name_fault(name: str) -> str:
    """The reason why the catalog may not set `name`; empty if it may."""
    if not _TOKEN.fullmatch(name):
        return "must be a header name: letters, digits and dashes"
    lowered = name.lower()
    if lowered in _OURS or lowered.startswith(_OUR_PREFIXES):
        return f"may not be {name}, which the gateway sets itself"
    return ""
