"""The suite's settings in BILLING_MODE=stripe: for tests/stripe_mode, which runs in a process of its own."""

import os

STRIPE = {
    "BILLING_MODE": "stripe",
    "STRIPE_SECRET_KEY": "sk_test_KeyThatOnlyTheProviderMayEverSee",
    "STRIPE_WEBHOOK_SECRET": "whsec_SecretThatIsInNoTable",
    # A test names the port of its provider.
    "STRIPE_API_BASE": "http://127.0.0.1:9",
    "STRIPE_PRICE_ID": "price_1",
}
os.environ.update(STRIPE)

from tests.settings import *  # noqa: E402, F403
