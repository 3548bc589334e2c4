"""A deployment in BILLING_MODE=stripe: copies of the provider's objects, in tables of the provider's library."""

from __future__ import annotations

import uuid

from tests.e2e.gateway_process import Deployment
from tests.e2e.secret_search import Hoard
from tests.fakes.payment_provider import shapes
from tests.stripe_mode import provider as billing


def copy_from_the_payment_provider(made: Deployment, hoard: Hoard, planted: Hoard) -> None:
    """The tables of the library are there, filled by an operator's command. A customer's address is planted."""
    hoard.add("a payment's secret", billing.CLIENT_SECRET)
    email = planted.add("a customer's address", f"{uuid.uuid4().hex}@example.com")
    with billing.listening() as provider:
        about = provider.add(billing.subscription("sub_1", "cus_1", client_secret=billing.CLIENT_SECRET))
        for thing in (billing.customer("cus_1", email=email), billing.event("evt_1", about), billing.product()):
            provider.add(thing)
        provider.answers["/v1/products/prod_1/features"] = shapes.listed([], "/v1/products/prod_1/features")
        mode = {"BILLING_MODE": "stripe", "STRIPE_API_BASE": provider.origin}
        made.manage("migrate", "--no-input", **mode)
        printed = made.manage("djstripe_sync_models", "Customer", "Subscription", "Event", **mode)
        keys = {each.headers["authorization"] for each in provider.asked}
        assert keys == {f"Bearer {made.environment['STRIPE_SECRET_KEY']}"}
    (made.folder / "logs" / "djstripe_sync_models.txt").write_text(printed)
