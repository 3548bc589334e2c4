"""Billing: the source of each organization's subscription state."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.lib import secrets
from gateway.settings import env
from gateway.settings.security import ALLOW_PRIVATE_ENDPOINTS

# The last part of the webhook's address. Spec: D90
PAYMENT_PROVIDER = "stripe"
STRIPE_SECRET_KEY = env.text("STRIPE_SECRET_KEY")
# The provider signs with both while a secret is rotated.
STRIPE_WEBHOOK_SECRET = env.text("STRIPE_WEBHOOK_SECRET")
STRIPE_WEBHOOK_SECRETS = tuple(part.strip() for part in STRIPE_WEBHOOK_SECRET.split(",") if part.strip())
STRIPE_API_BASE = env.text("STRIPE_API_BASE").rstrip("/")
STRIPE_PRICE_ID = env.text("STRIPE_PRICE_ID")
# The shapes that this version reads and writes; an account's own default may be another one.
STRIPE_API_VERSION = "2026-08-26.dahlia"
# disabled: every organization is active · manual: operators set the state · stripe: the provider does. The mode is
# chosen by this variable alone: a key that is set beside it must not end a plan. Spec: D41, D152
BILLING_MODE = env.text("BILLING_MODE", "disabled")
if BILLING_MODE not in {"stripe", "manual", "disabled"}:
    env.refuse("BILLING_MODE", "must be stripe, manual or disabled.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_api = urlsplit(STRIPE_API_BASE)
# A provider in a private network, such as a stand-in of tests. The embedded default may name one of its own host.
STRIPE_API_IS_PRIVATE = ALLOW_PRIVATE_ENDPOINTS or (env.EMBEDDED and _is_loopback(_api.hostname or ""))
# Beat and migrations run without secrets; they send and receive nothing.
if BILLING_MODE == "stripe" and not env.HELPER:
    _needed = {
        "STRIPE_SECRET_KEY": STRIPE_SECRET_KEY,
        "STRIPE_WEBHOOK_SECRET": STRIPE_WEBHOOK_SECRETS,
        "STRIPE_API_BASE": STRIPE_API_BASE,
        "STRIPE_PRICE_ID": STRIPE_PRICE_ID,
    }
    if _missing := [name for name, value in _needed.items() if not value]:
        env.refuse(", ".join(_missing), "must be set when BILLING_MODE is stripe.")
    if _api.scheme != "https" and not (_api.scheme == "http" and STRIPE_API_IS_PRIVATE):
        env.refuse("STRIPE_API_BASE", "must begin with https://, such as https://api.stripe.com.")
    if not _api.hostname or _api.path or _api.query or _api.username is not None:
        env.refuse("STRIPE_API_BASE", "must be an address without a path, such as https://api.stripe.com.")
    if len(STRIPE_WEBHOOK_SECRETS) > 2:  # each one is tried for each request
        env.refuse("STRIPE_WEBHOOK_SECRET", "may hold two secrets: the new one and, while it is rotated, the old one.")
# The page where an owner renews the plan; every 402 links to it. Spec: D6
BILLING_PORTAL_URL = env.text("BILLING_PORTAL_URL")
if BILLING_PORTAL_URL and urlsplit(BILLING_PORTAL_URL).scheme != "https":
    env.refuse("BILLING_PORTAL_URL", "must begin with https://.")
LEGACY_CODE_SHA256 = tuple(secrets.sha256(code) for code in env.names("LEGACY_CODES"))
