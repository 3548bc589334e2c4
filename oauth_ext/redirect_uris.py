"""Pure: redirect addresses: which ones a client may register, when a sent one matches, and how one is shown.

Spec: D116, D118 · protocol.md B.3, B.4 · reliability.md 5 (25, 37)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_CHARACTERS = 2_000  # of one address
HOST_CHARACTERS = 255  # of the shown and stored host

# RFC 3986's characters without the ones we refuse anyway: space, quotes, angle brackets, backslash, fragment, star.
_PLAIN = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()+,;=%]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
# Strict, because URL parsers differ on other spellings of loopback.
_LOOPBACK = re.compile(r"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?].*)?")
# A name or an address. Browsers accept more characters, which a person may take for the end of the name.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# An app's own scheme is its reversed domain name (RFC 8252 7.1), so it holds a dot. Known apps
# without a dot in their scheme are listed. Any other scheme may belong to the system, a browser or another program.
_KNOWN_APP_SCHEMES = frozenset(
    {
        "antigravity", "claude", "claude-dev", "code-oss", "codex", "cursor", "cursor-nightly", "goose", "jetbrains",
        "kiro", "lmstudio", "positron", "raycast", "theia", "trae", "void", "vscode", "vscode-insiders", "vscodium",
        "warp", "warppreview", "windsurf", "windsurf-next", "zed", "zed-preview"
    }
)  # fmt: skip
# Schemes of operating systems, some with a dot: they start programs with the address as input.
_SYSTEM_SCHEME_PREFIXES = ("com.apple.", "com.microsoft.", "microsoft.", "ms-", "windows.", "x-apple")


class BadRedirectUri(ValueError):
    """The address is refused; `reason` is a sentence that never repeats it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check(uri: object) -> str:
    """Returns `uri` if it is https, http on loopback, or an app's own scheme. Raises: BadRedirectUri."""
    if not isinstance(uri, str) or not 0 < len(uri) <= MAX_CHARACTERS or not _PLAIN.fullmatch(uri):
        raise BadRedirectUri("A redirect URI must be a plain absolute URI without fragment, wildcard or spaces.")
    parts = _split(uri)
    if parts is None or not _SCHEME.fullmatch(parts.scheme) or not uri.startswith(f"{parts.scheme}:"):
        raise BadRedirectUri("A redirect URI must be an absolute URI.")
    # In `https://known.example@evil.example/` a person reads the wrong host.
    if parts.username is not None or parts.password is not None:
        raise BadRedirectUri("A redirect URI must not carry user information.")
    if parts.scheme == "http":
        if not is_loopback(uri):
            raise BadRedirectUri("Plain http is for loopback addresses only; use https.")
    elif parts.scheme == "https":
        if not _HOST.fullmatch(parts.netloc):
            raise BadRedirectUri("A redirect URI must name a host.")
    elif not _is_app_scheme(parts.scheme):
        raise BadRedirectUri("This scheme is not accepted in a redirect URI.")
    if len(shown_host(uri)) > HOST_CHARACTERS:
        raise BadRedirectUri("The host of a redirect URI is too long.")
    return uri


def registered_as(registered: Iterable[str], sent: str) -> bool:
    """Compares character by character, except for the port of a loopback address. Spec: RFC 8252 7.3"""
    return any(sent == each or _same_loopback(each, sent, any_port=True) for each in registered)


def same(left: str, right: str) -> bool:
    """A loopback address without a path equals the one with the path `/`."""
    return left == right or _same_loopback(left, right, any_port=False)


def is_loopback(uri: str) -> bool:
    return _loopback(uri) is not None


def stays_on_the_computer(uri: str) -> bool:
    """Returns True where any program on the person's computer may receive the code: loopback, or an app's scheme."""
    return not uri.startswith("https://")


def shown_host(uri: str) -> str:
    """Returns the host that the consent page shows, or the scheme of an app."""
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return parts.netloc if parts.scheme == "https" else parts.hostname or parts.netloc
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"


def form_action_sources(uri: str) -> list[str]:
    """Returns the `form-action` sources for a form whose response redirects to `uri`."""
    parts = urlsplit(uri)
    if parts.scheme == "https":
        # Browsers check every later redirect too, and callbacks of hosted clients redirect to other https addresses.
        return ["https:"]
    if parts.scheme == "http":
        # A CSP source list cannot express an IPv6 address.
        return ["https:", "http:" if parts.netloc.startswith("[") else f"http://{parts.netloc}"]
    return ["https:", f"{parts.scheme}:"]


def with_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Appends query parameters; existing ones stay as they are."""
    separator = "&" if "?" in uri else "?"
    return f"{uri}{separator}{urlencode(parameters)}"


def _is_app_scheme(scheme: str) -> bool:
    return scheme in _KNOWN_APP_SCHEMES or ("." in scheme and not scheme.startswith(_SYSTEM_SCHEME_PREFIXES))


@dataclass(frozen=True, slots=True)
class _Loopback:
    host: str
    port: str
    rest: str


def _loopback(uri: str) -> _Loopback | None:
    match = _LOOPBACK.fullmatch(uri)
    if match is None or not _PLAIN.fullmatch(uri):
        return None
    port = match["port"] or ""
    if port and not 0 < int(port) <= 65_535:
        return None
    rest = match["rest"] or "/"
    return _Loopback(match["host"], port, rest if rest.startswith("/") else f"/{rest}")


def _same_loopback(left: str, right: str, *, any_port: bool) -> bool:
    one, other = _loopback(left), _loopback(right)
    if one is None or other is None:
        return False
    return (one.host, one.rest) == (other.host, other.rest) and (any_port or one.port == other.port)


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError for a bad port
    except ValueError:
        return None
    return parts
