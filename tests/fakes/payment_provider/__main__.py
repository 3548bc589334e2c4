"""The stand-in as a process: `python -m tests.fakes.payment_provider --port 9500`.

PAYMENT_PROVIDER_KEY is the secret key that clients must present. Webhook endpoints are a wish of a test (control.py).
"""

from __future__ import annotations

import argparse
import logging
import os

import uvicorn

from tests.fakes.payment_provider.control import control_route
from tests.fakes.payment_provider.provider import Provider, Settings


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A stand-in for the payment provider, on loopback only.")
    parser.add_argument("--port", type=int, default=9500)
    parser.add_argument("--price", default="price_flat", help="the identifier of the price that it sells")
    options = parser.parse_args()
    settings = Settings(
        origin=f"http://127.0.0.1:{options.port}",
        secret_key=os.environ.get("PAYMENT_PROVIDER_KEY", "sk_test_standin"),
        price_id=options.price,
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
