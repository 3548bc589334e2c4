"""The identity provider and the vendors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings

from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib.guarded_client import OutboundError
from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable
from proxy.control_plane.health.selectors import every_vendor_health
from proxy.control_plane.health.states import HealthStatus


def identity_provider() -> Sequence[Finding]:
    """It answers, is the one of the address, and publishes keys."""
    if not settings.OIDC_OP_DISCOVERY_URL:
        return [warning("OIDC_OP_DISCOVERY_URL is not set: people cannot sign in.")]
    try:
        found = provider.asked_now()
    except ProviderUnavailable as fault:
        # The demo provider of an installation that is not started is away without harm.
        say = warning if settings.EMBEDDED and isinstance(fault.__cause__, OutboundError) else error
        return [say(f"The identity provider at {settings.OIDC_OP_DISCOVERY_URL} cannot be used: {fault}.")]
    return [ok(f"The identity provider {found.issuer} answers.")]


def vendors() -> Sequence[Finding]:
    known = registry.load().all()
    if not known:
        return [error("The catalog has no vendors. Run load_vendors.")]
    return [_health(len(known)), *_registered_clients(known)]


def _health(known: int) -> Finding:
    down = [each.display_name for each in every_vendor_health() if each.status is HealthStatus.DOWN]
    if down:
        return warning(f"{len(down)} of the connected vendors are down: {', '.join(sorted(down)[:10])}.")
    return ok(f"{known} vendors in the catalog, none of the connected ones is down.")


def _registered_clients(known: Iterable[Vendor]) -> list[Finding]:
    """Vendors without a working sign-in: a client half configured is a mistake, one not yet registered a choice."""
    found = []
    for vendor in sorted(known, key=lambda each: each.slug):
        if vendor.oauth is None or not vendor.awaits_client:
            continue
        missing = vendor.oauth.missing_variables
        named = [each for each in (vendor.oauth.client_id_env, vendor.oauth.client_secret_env) if each]
        say = warning if vendor.oauth.client_id or len(missing) < len(named) else ok
        found.append(say(f"No one can sign in to {vendor.name}. Set {', '.join(missing)}."))
    return found
