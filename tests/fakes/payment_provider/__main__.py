"""The stand-in as a process: `python -m tests.fakes.payment_provider --port 9500`.

PAYMENT_PROVIDER_KEY is the secret key that clients must present, PAYMENT_PROVIDER_ENDPOINTS a JSON list of webhook
endpoints, each `{"url", "secrets", "kinds", "api_version"}`, of which the last two may be left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import os

import uvicorn

from tests.fakes.payment_provider.control import control_route
from tests.fakes.payment_provider.provider import Provider, Settings
from tests.fakes.payment_provider.webhooks import Endpoint


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A stand-in for the payment provider, on loopback only.")
    parser.add_argument("--port", type=int, default=9500)
    parser.add_argument("--price", default="price_flat", help="the identifier of the price that it sells")
    options = parser.parse_args()
    given = json.loads(os.environ.get("PAYMENT_PROVIDER_ENDPOINTS", "[]"))
    settings = Settings(
        origin=f"http://127.0.0.1:{options.port}",
        secret_key=os.environ.get("PAYMENT_PROVIDER_KEY", "sk_test_standin"),
        price_id=options.price,
        endpoints=[Endpoint(**each) for each in given],
    )
    logging.disable(logging.ERROR)  # answers that are cut on purpose
    provider = Provider(settings)
    config = uvicorn.Config(
        provider.app(control_route(provider)),
        host="127.0.0.1",
        port=options.port,
        access_log=False,
        date_header=False,  # the provider's own clock says the date
        log_config=None,
        timeout_graceful_shutdown=0,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
