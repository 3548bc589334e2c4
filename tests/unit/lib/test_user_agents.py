"""Browsers and systems by the headers that they send."""

from __future__ import annotations

import pytest

from gateway.lib.user_agents import browser_of, system_of

MOZILLA, WEBKIT = "Mozilla/5.0", "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "browser", "system"),
    [
        (f"{MOZILLA} (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/140.0 Safari/537.36", "Chrome", "Windows"),
        (f"{MOZILLA} (Windows NT 10.0) {WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0", "Edge", "Windows"),
        (f"{MOZILLA} (Macintosh; Intel Mac OS X 15_0) {WEBKIT} Version/18 Safari/605.1", "Safari", "macOS"),
        (f"{MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} CriOS/140 Safari/604", "Chrome", "iPhone"),
        (
            f"{MOZILLA} (Linux; Android 15; SM-S901) {WEBKIT} SamsungBrowser/28 Chrome/130",
            "Samsung Internet",
            "Android",
        ),
        (f"{MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox", "Linux"),
        (f"{MOZILLA} (X11; CrOS x86_64) {WEBKIT} Chrome/140.0 Safari/537.36", "Chrome", "ChromeOS"),
        ("curl/8.5.0", "curl", ""),
        ("<script>alert(1)</script>", "", ""),
        ("", "", ""),
    ],
)
def test_a_header_in_words(user_agent: str, browser: str, system: str) -> None:
    assert (browser_of(user_agent), system_of(user_agent)) == (browser, system)
