"""Rows of the fault matrix on what the service is started with, and on the identity and payment providers beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from tests.e2e import agent
from tests.factories.billing import PATH, SECRET, checkout_session, event, signature, told
from tests.faults.history import Ending
from tests.faults.matrix_stage import READING, Stage
from tests.faults.matrix_table import row
from tests.faults.silent_server import silent_server
from tests.vendors.processes import ROOT


@row("identity provider down", "sessions and tokens work; sign-in says so")
def identity_provider_down(on: Stage) -> None:
    assert on.get(f"/api/orgs/{on.client.org_id}").status_code == 200
    assert on.call().ending is Ending.SUCCESS
    with on.http() as http:
        begun = http.get("/oidc/authenticate/")
        assert (begun.status_code, begun.headers["Location"]) == (302, "/signin?failed=unreachable")
        assert http.get(begun.headers["Location"]).status_code == 200, "no loop"
        assert agent.access_token(http, on.client)


@row("identity provider accepts and is silent", "sign-in says so in time; calls go on")
def identity_provider_silent(on: Stage) -> None:
    with silent_server() as silent:
        address = f"{silent.url}/.well-known/openid-configuration"
        web = on.start_web(OIDC_OP_DISCOVERY_URL=address)
        with on.http(web) as http:
            assert on.call(client=http).ending is Ending.SUCCESS
            begun = http.get("/oidc/authenticate/")
            assert (begun.status_code, begun.headers["Location"]) == (302, "/signin?failed=unreachable")


@row("payment provider down; its events twice and late", "portal 502, plan kept; each event once", is_long=True)
def payment_provider_down(on: Stage) -> None:
    closed = "http://127.0.0.1:9"
    settings = {
        "BILLING_MODE": "stripe",
        "STRIPE_SECRET_KEY": "sk_test_of_the_matrix",
        "STRIPE_WEBHOOK_SECRET": SECRET,
        "STRIPE_API_BASE": closed,
        "STRIPE_PRICE_ID": "price_flat",
    }
    org_id, customer = on.client.org_id, f"cus_{time.monotonic_ns()}"
    on.made.manage("migrate", "--skip-checks", "--verbosity=0", **settings)  # the provider's copies have tables
    with on.http(on.start_web(**settings)) as http:

        def tell(found: dict[str, Any]) -> int:
            body = json.dumps(found).encode()
            headers = {"Stripe-Signature": signature(body), "Content-Type": "application/json"}
            return http.post(PATH, content=body, headers=headers).status_code

        now = int(time.time())
        bound = event("checkout.session.completed", checkout_session(org_id, customer=customer), created=now - 90)
        active = told("active", customer=customer, created=now, end=now + 86_400)
        older = told("unpaid", customer=customer, created=now - 60)
        assert [tell(each) for each in (bound, active, active, older, active)] == [200] * 5
        plan = http.get(f"/api/orgs/{org_id}", headers={"Cookie": on.cookie}).json()["subscriptionStatus"]
        assert plan == "active"
        stored = on.made.database.select("SELECT count(*) FROM billing_providerevent")[0][0]
        assert stored % 3 == 0, "each event is stored once"
        ask = {"headers": {"Cookie": on.cookie}, "json": {"org_id": org_id}}
        assert http.post("/api/billing/portal", **ask).status_code == 502
        assert http.get(f"/api/orgs/{org_id}", headers={"Cookie": on.cookie}).json()["subscriptionStatus"] == plan
        assert on.call(client=http).ending is Ending.SUCCESS


def refused_start(on: Stage, **environment: str) -> str:
    """The words of a web process that does not start."""
    command = [sys.executable, "manage.py", "check", "--deploy"]
    known = {**on.made.environment, **environment}
    done = subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    return done.stdout + done.stderr


@row("key of the credentials or a setting is broken", "the start is refused, and names the variable")
def started_wrong(on: Stage) -> None:
    for name, value in {
        "CREDENTIAL_KEYS": "new:not-base64!",
        "VENDOR_TOOL_CONFIG": '{"fake": {"ttl": "soon"}}',
        "TOKEN_SIGNING_KEYS": "broken",
    }.items():
        assert name in refused_start(on, **{name: value})
    assert on.call(READING).ending is Ending.SUCCESS
