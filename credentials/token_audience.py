"""Pure: the addresses that a token's resource covers. Spec: RFC 8707, 9728"""

from urllib.parse import urlsplit


def covers(resource: str, mcp_url: str) -> bool:
    """Whether the resource is the address itself, or a folder above it on the same origin."""
    ours, theirs = urlsplit(mcp_url), urlsplit(resource)
    if (ours.scheme, ours.netloc.lower()) != (theirs.scheme, theirs.netloc.lower()) or theirs.query or theirs.fragment:
        return False
    folder = theirs.path.rstrip("/")
    return ours.path.rstrip("/") == folder or ours.path.startswith(f"{folder}/")
