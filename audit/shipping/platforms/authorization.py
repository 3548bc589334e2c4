"""Pure: what proves who sends, as header values and as a person gives it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from audit.shipping.platforms.exchange import InvalidDestination
from audit.shipping.platforms.request_parts import fits_header
from gateway.lib.sentences import sentence


def basic(username: str, password: str) -> str:
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def check_header_text(config: Mapping[str, str], name: str) -> None:
    """Raises: InvalidDestination."""
    if (value := config.get(name)) and not fits_header(value):
        raise InvalidDestination(
            "config_missing", **{name: sentence("Contains a character that isn’t allowed in a header.")}
        )


def check_pair(config: Mapping[str, str]) -> None:
    """`username` and `password` come together. Raises: InvalidDestination."""
    if config.get("password") and not config.get("username"):
        raise InvalidDestination("config_missing", username=sentence("Enter the user name for this password."))
    if config.get("username") and not config.get("password"):
        raise InvalidDestination("config_missing", password=sentence("Enter the password for this user."))
    if ":" in config.get("username", ""):
        raise InvalidDestination("config_missing", username=sentence("A user name can’t contain a colon."))
