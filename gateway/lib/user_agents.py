"""Pure: the browser and the system that a User-Agent header claims, in words."""

from __future__ import annotations

# The first part that occurs counts: most browsers name others as well.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_of(user_agent: str) -> str:
    """Empty for an unknown one."""
    return _first(_BROWSERS, user_agent)


def system_of(user_agent: str) -> str:
    """Empty for an unknown one."""
    return _first(_SYSTEMS, user_agent)


def _first(names: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for part, name in names if part in user_agent), "")
