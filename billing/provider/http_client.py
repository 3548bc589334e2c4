"""The HTTP client of the provider's library: its requests leave through gateway.lib.guarded_client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stripe
from django.conf import settings

from gateway.lib import guarded_client
from gateway.lib.guarded_client import OutboundError
from gateway.lib.outbound import AddressRefused

TIMEOUT_S = 10.0
MAX_BYTES = 1024 * 1024


class GuardedHTTPClient(stripe.HTTPClient):
    """One attempt for each request, ended after TIMEOUT_S; no redirect is followed."""

    name = "guarded"

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None, **_: Any
    ) -> tuple[str, int, Mapping[str, str]]:
        """Returns body, status and headers. Raises: stripe.APIConnectionError."""
        try:
            answer = guarded_client.send(
                method.upper(),
                url,
                allow_private=settings.STRIPE_API_IS_PRIVATE,
                timeout_s=TIMEOUT_S,
                max_bytes=MAX_BYTES,
                headers=headers,
                body=post_data.encode() if isinstance(post_data, str) else post_data,
            )
        except (AddressRefused, OutboundError) as fault:
            # The library would repeat the request after some faults; a caller decides that here.
            raise stripe.APIConnectionError(type(fault).__name__, should_retry=False) from None
        return answer.body.decode(errors="replace"), answer.status, answer.headers

    def close(self) -> None:
        """A request has a connection of its own, so that nothing is left to close."""
