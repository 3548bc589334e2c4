"""Settings that start the service and still do not work: proxy, address, hosts."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.checks import CheckMessage
from django.http import HttpRequest

from gateway import checks as boot_checks
from gateway import liveness
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib import guarded_client
from gateway.lib.guarded_client import CertificateRefused, OutboundError
from gateway.lib.outbound import AddressRefused
from oauth_ext import checks as oauth_checks

WIDEST_IPV4, WIDEST_IPV6 = 8, 16  # prefix lengths: a wider network is no proxy's


def settings_read() -> Sequence[Finding]:
    """Missing and weak values stop the start with a line of their own. Contract: 5"""
    found = from_messages([*boot_checks.coordination(None), *boot_checks.extra_catalog(None)])
    found += from_messages(oauth_checks.signing_keys(None))
    mode = "embedded" if settings.EMBEDDED else "production"
    return found or [ok(f"Version {own_version()}, mode {mode}, {settings.DEPLOYMENT_PROCESSES} web processes.")]


def proxy() -> Sequence[Finding]:
    """In production a proxy ends TLS, and it has to be believed."""
    found = [
        error(f"TRUSTED_PROXIES holds {text}, so anyone can claim any address. Name the proxy's own network.")
        for text in settings.TRUSTED_PROXIES
        if _is_too_wide(text)
    ]
    if settings.HTTPS and not settings.TRUSTED_PROXIES:
        found.append(
            error(
                "TRUSTED_PROXIES is empty while BASE_URL is https: X-Forwarded-Proto of the proxy is not believed, and"
                " sign-in fails. Name the proxy's address."
            )
        )
    return found or [ok(f"Trusted proxies: {', '.join(settings.TRUSTED_PROXIES) or 'none needed'}.")]


def _is_too_wide(text: str) -> bool:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return network.prefixlen < (WIDEST_IPV4 if network.version == 4 else WIDEST_IPV6)


def base_url() -> Sequence[Finding]:
    """BASE_URL leads to this service. Without a running service that is a warning."""
    url = f"{settings.BASE_URL}/health"
    try:
        answer = guarded_client.send("GET", url, allow_private=True, timeout_s=5, max_bytes=64 * 1024)
    except CertificateRefused as fault:
        return [error(f"{settings.BASE_URL} has a certificate that is refused: {fault}.")]
    except (AddressRefused, OutboundError) as fault:
        return [warning(f"{settings.BASE_URL} does not answer from this host ({type(fault).__name__}).")]
    try:
        version = json.loads(answer.body)["version"]
    except (ValueError, KeyError, TypeError):
        return [error(f"{settings.BASE_URL}/health answers {answer.status} and is not this service.")]
    if version != (own := own_version()):
        return [warning(f"{settings.BASE_URL} runs version {version}, and this command is {own}.")]
    return [ok(f"{settings.BASE_URL} answers with version {version}.")]


def own_version() -> str:
    """As this release's /health says it."""
    request = HttpRequest()
    request.method = "GET"
    return str(json.loads(async_to_sync(liveness.health)(request).content)["version"])


def from_messages(messages: Sequence[CheckMessage]) -> list[Finding]:
    """Django's messages as findings."""
    return [
        (error if message.is_serious() else warning)(" ".join(filter(None, (message.msg, message.hint))))
        for message in messages
    ]
