"""Who says whether an organization has paid."""

from __future__ import annotations

from urllib.parse import urlsplit

from gateway.lib import secrets
from gateway.settings import env

STRIPE_SECRET_KEY = env.text("STRIPE_SECRET_KEY")
# disabled: every organization is active · manual: operators set the state · stripe: the provider does. Spec: D41
BILLING_MODE = env.text("BILLING_MODE", "stripe" if STRIPE_SECRET_KEY else "disabled")
if BILLING_MODE not in {"stripe", "manual", "disabled"}:
    env.refuse("BILLING_MODE", "must be stripe, manual or disabled.")
if BILLING_MODE == "stripe" and not STRIPE_SECRET_KEY:
    env.refuse("STRIPE_SECRET_KEY", "must be set when BILLING_MODE is stripe.")
# Where an owner renews the plan, named in every 402. Spec: D6
BILLING_PORTAL_URL = env.text("BILLING_PORTAL_URL")
if BILLING_PORTAL_URL and urlsplit(BILLING_PORTAL_URL).scheme != "https":
    env.refuse("BILLING_PORTAL_URL", "must begin with https://.")
LEGACY_CODE_SHA256 = tuple(secrets.sha256(code) for code in env.names("LEGACY_CODES"))
