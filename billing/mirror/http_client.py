from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stripe
from django.conf import settings

from billing.mode import is_live
from billing.stripe_client import GuardedHTTPClient

# In the form of a key, which dj-stripe checks.
KEY_NAME = f"sk_{'live' if is_live() else 'test'}_NameOfTheKeyThatTheGatewayHolds"


class ReadingHTTPClient(GuardedHTTPClient):
    """The client of dj-stripe: GET requests to the provider's API, with the key in the place of KEY_NAME."""

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
        *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        """Raises: stripe.APIConnectionError, for other requests without sending them."""
        given = dict(headers or {})
        if method.lower() != "get":
            raise stripe.APIConnectionError("The mirror reads only.", should_retry=False)
        if not url.startswith(f"{stripe.api_base}/"):
            raise stripe.APIConnectionError("The mirror asks STRIPE_API_BASE only.", should_retry=False)
        if given.get("Authorization") != f"Bearer {KEY_NAME}":
            raise stripe.APIConnectionError("The mirror uses STRIPE_SECRET_KEY only.", should_retry=False)
        given["Authorization"] = f"Bearer {settings.STRIPE_SECRET_KEY}"
        return super().request(method, url, given, post_data)
