"""The rules of a destination: its platform, its address and its configuration. Spec: §2 · D96, D97, D140"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from audit.plain_text import has_harmful_characters
from audit.shipping.platforms.exchange import InvalidDestination
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.registry import PLATFORMS, platform_named
from audit.shipping_models import URL_CHARACTERS
from gateway.lib.errors import DomainError, Invalid
from gateway.lib.outbound import AddressRefused, check_url
from gateway.lib.sentences import sentence

VALUE_CHARACTERS = 4_096  # of one value of a configuration
PORTS = frozenset({443, 8088, 8443})
FIRST_HIGH_PORT = 9200
MASK_SHOWN = 4
MASK = "*" * 8
_SHORTEST_SHOWN = 8  # of a shorter value, four characters would be most


class EndpointNotAllowed(DomainError):
    """Spec: D97"""

    code, message, status = "endpoint_not_allowed", sentence("This address is not allowed."), 400


class ConfigMissing(DomainError):
    """Spec: D97"""

    code, message, status = "config_missing", sentence("The platform needs all of these values."), 400


@dataclass(frozen=True, slots=True)
class CheckedDestination:
    platform: Platform
    endpoint_url: str
    config: dict[str, str]


def checked_platform(name: str) -> Platform:
    """Raises: Invalid."""
    platform = platform_named(name)
    if platform is None:
        raise Invalid(fields={"platform": [sentence("Choose one of %(platforms)s.", platforms=", ".join(PLATFORMS))]})
    return platform


def checked_destination(platform: Platform, endpoint_url: str, config: Mapping[str, object]) -> CheckedDestination:
    """Raises: Invalid, ConfigMissing, EndpointNotAllowed."""
    values = _checked_values(platform, config)
    url = endpoint_url.strip() or platform.preset_url
    _check_endpoint(url)
    try:
        platform.check(url, values)
    except InvalidDestination as fault:
        fields = {_member(name): [text] for name, text in fault.fields.items()}
        raise (ConfigMissing if fault.code == ConfigMissing.code else EndpointNotAllowed)(fields=fields) from None
    return CheckedDestination(platform, url, values)


def masked(platform: Platform, config: Mapping[str, str]) -> dict[str, str]:
    """The first four characters and eight asterisks of each secret; asterisks alone for a short one. Spec: D96"""
    shown = {each.name for each in platform.fields if not each.secret}
    return {name: value if name in shown else masked_value(value) for name, value in config.items()}


def masked_value(value: str) -> str:
    return MASK if len(value) < _SHORTEST_SHOWN else value[:MASK_SHOWN] + MASK


def _member(name: str) -> str:
    """A platform names the address or a key of `config`."""
    return name if name == "endpointUrl" else f"config.{name}"


def _is_mask(value: str) -> bool:
    # One of a value that was replaced meanwhile: stored, it would be the secret.
    return value.endswith(MASK) and len(value) in (len(MASK), MASK_SHOWN + len(MASK))


def _checked_values(platform: Platform, config: Mapping[str, object]) -> dict[str, str]:
    known = {each.name: each for each in platform.fields}
    faults: dict[str, list[str]] = {}
    values = {}
    for name, value in config.items():
        # An unknown name may be long, or a secret in the wrong place: it is not repeated.
        if name not in known:
            faults["config"] = [
                sentence("This platform has only these settings: %(value)s.", value=", ".join(known) or "none")
            ]
        elif value is None or value == "":
            continue
        elif not isinstance(value, str):
            faults[f"config.{name}"] = [sentence("Must be text.")]
        elif len(value) > VALUE_CHARACTERS:
            faults[f"config.{name}"] = [
                sentence("Use at most %(value_characters)s characters.", value_characters=VALUE_CHARACTERS)
            ]
        elif known[name].secret and _is_mask(value):
            faults[f"config.{name}"] = [sentence("Enter the value itself, not its masked form.")]
        # A browser ends the lines of a form with both characters.
        elif has_harmful_characters(value.replace("\r\n", "").replace("\n", "")):
            faults[f"config.{name}"] = [sentence("Control characters are not allowed.")]
        else:
            values[name] = value.strip().replace("\r\n", "\n")
    if faults:
        raise Invalid(fields=faults)
    missing = [each for each in platform.fields if each.required and not values.get(each.name)]
    if missing:
        raise ConfigMissing(
            fields={f"config.{each.name}": [sentence("%(each)s is required.", each=each.label)] for each in missing}
        )
    return values


def _check_endpoint(url: str) -> None:
    if not url:
        raise Invalid(fields={"endpointUrl": [sentence("Enter the address.")]})
    if len(url) > URL_CHARACTERS or has_harmful_characters(url) or " " in url:
        raise EndpointNotAllowed(fields={"endpointUrl": [sentence("This isn’t a web address.")]})
    try:
        check_url(url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, own_url=settings.BASE_URL)
    except (AddressRefused, ValueError):
        text = sentence("Use an https:// address of a public host, without a user name.")
        raise EndpointNotAllowed(fields={"endpointUrl": [text]}) from None
    port = urlsplit(url).port or 443
    if not settings.ALLOW_PRIVATE_ENDPOINTS and port not in PORTS and port < FIRST_HIGH_PORT:
        text = sentence(
            "Port %(port)s is not allowed: use 443, 8088, 8443, or a port from %(first_high_port)s up.",
            port=port,
            first_high_port=FIRST_HIGH_PORT,
        )
        raise EndpointNotAllowed(fields={"endpointUrl": [text]})
    if urlsplit(url).fragment:
        raise EndpointNotAllowed(
            fields={"endpointUrl": [sentence("The address can’t contain a # or anything after it.")]}
        )
