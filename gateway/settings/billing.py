"""Billing: the source of each organization's subscription state."""

from urllib.parse import urlsplit

from gateway.lib import secrets
from gateway.settings import env

STRIPE_SECRET_KEY = env.text("STRIPE_SECRET_KEY")
STRIPE_WEBHOOK_SECRET = env.text("STRIPE_WEBHOOK_SECRET")
STRIPE_API_BASE = env.text("STRIPE_API_BASE")
STRIPE_PRICE_ID = env.text("STRIPE_PRICE_ID")
# disabled: every organization is active · manual: operators set the state · stripe: the provider does. The mode is
# chosen by this variable alone: a key that is set beside it must not end a plan. Spec: D41, D152
BILLING_MODE = env.text("BILLING_MODE", "disabled")
if BILLING_MODE not in {"stripe", "manual", "disabled"}:
    env.refuse("BILLING_MODE", "must be stripe, manual or disabled.")
if BILLING_MODE == "stripe":
    _needed = {
        "STRIPE_SECRET_KEY": STRIPE_SECRET_KEY,
        "STRIPE_WEBHOOK_SECRET": STRIPE_WEBHOOK_SECRET,
        "STRIPE_API_BASE": STRIPE_API_BASE,
        "STRIPE_PRICE_ID": STRIPE_PRICE_ID,
    }
    if _missing := [name for name, value in _needed.items() if not value]:
        env.refuse(", ".join(_missing), "must be set when BILLING_MODE is stripe.")
    # Without the provider's webhooks every organization would lapse at its first request.
    env.refuse(
        "BILLING_MODE",
        "cannot be stripe in this version, which does not talk to the payment provider yet; use disabled or manual.",
    )
# The page where an owner renews the plan; every 402 links to it. Spec: D6
BILLING_PORTAL_URL = env.text("BILLING_PORTAL_URL")
if BILLING_PORTAL_URL and urlsplit(BILLING_PORTAL_URL).scheme != "https":
    env.refuse("BILLING_PORTAL_URL", "must begin with https://.")
LEGACY_CODE_SHA256 = tuple(secrets.sha256(code) for code in env.names("LEGACY_CODES"))
