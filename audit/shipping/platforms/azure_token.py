"""Pure: a token of Microsoft Entra ID for the Logs Ingestion API, by client credentials.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import math
import re
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from audit.shipping.platforms.exchange import Answer, DestinationRefused, Outgoing, RetryLater, Target, Token
from audit.shipping.platforms.verdicts import EXCERPT_CHARACTERS, retry_after_s, words_of

# By the end of the ingestion host: the sign-in host and the audience of each of Microsoft's clouds.
LOGIN_HOSTS: Final = {
    "com": "login.microsoftonline.com",
    "us": "login.microsoftonline.us",
    "cn": "login.partner.microsoftonline.cn",
}
_LONGEST_LIFETIME_S: Final = 86_400
_USED_SHARE: Final = 0.9  # the rest is for slow requests and for clocks that differ
_BUSY: Final = frozenset({408, 425, 429})
_PASSING: Final = frozenset({"temporarily_unavailable", "server_error"})
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")
_UNUSABLE: Final = RetryLater("200: the sign-in service's answer has no usable token")


def token_request(target: Target, *, cloud: str) -> Outgoing:
    form = {
        "grant_type": "client_credentials",
        "client_id": target.config["clientId"],
        "client_secret": target.config["clientSecret"],
        # The audience ends with a slash itself.
        "scope": f"https://monitor.azure.{cloud}//.default",
    }
    return Outgoing(
        f"https://{LOGIN_HOSTS[cloud]}/{target.config['tenantId']}/oauth2/v2.0/token",
        {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
        urlencode(form).encode(),
        may_compress=False,
    )


def read_token(answer: Answer) -> Token | RetryLater | DestinationRefused:
    if answer.status in _BUSY or answer.status >= 500:
        return RetryLater(words_of(answer), retry_after_s(answer))
    document = _object(answer.body)
    if answer.status == 200:  # its body is never quoted: it may hold a token
        return _token(document)
    error = document.get("error")
    if isinstance(error, str) and error in _PASSING:
        return RetryLater(_words(answer, document), retry_after_s(answer))
    return DestinationRefused(_words(answer, document))


def _token(document: dict[str, Any]) -> Token | RetryLater:
    value, lifetime_s = document.get("access_token"), _seconds(document.get("expires_in"))
    if not isinstance(value, str) or not _TOKEN.fullmatch(value) or lifetime_s <= 0:
        return _UNUSABLE
    return Token(value, min(lifetime_s, _LONGEST_LIFETIME_S) * _USED_SHARE)


def _seconds(raw: object) -> float:
    """0 for none. Some endpoints write the number as a text."""
    try:
        seconds = float(raw) if isinstance(raw, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _words(answer: Answer, document: dict[str, Any]) -> str:
    """The error and the first line of its description; the other lines are numbers for Microsoft's support."""
    error, description = document.get("error"), document.get("error_description")
    if not isinstance(error, str) or not isinstance(description, str):
        return words_of(answer)
    first_line = description.partition("Trace ID:")[0].strip().partition("\n")[0].strip()
    return f"{answer.status}: {error}: {first_line}"[:EXCERPT_CHARACTERS]


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
