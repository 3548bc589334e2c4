"""A person, an agent and an operator use everything; afterwards no secret is found where none belongs."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, deployment
from tests.e2e.provider_copies import copy_from_the_payment_provider
from tests.e2e.secret_search import (
    Hoard,
    Transcript,
    database_places,
    file_places,
    forms,
    redis_places,
)
from tests.e2e.shared_gateway import acme_catalog
from tests.long_ones import WITH_LONG
from tests.vendors.browser import walk_sign_in
from tests.vendors.processes import free_port, stop
from tests.vendors.servers import DemoVendor, demo_identity_provider, demo_vendor_server

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

Places = list[tuple[str, bytes]]
# Where the service keeps the secrets that it is started with.
SECRETS_FILE = "secrets.env"


def made_up(shape: str) -> str:
    """A value that stands nowhere else."""
    return shape.format(uuid.uuid4().hex)


@dataclass
class Evidence:
    """All secrets entered and minted, and all that is left behind."""

    hoard: Hoard
    transcript: Transcript
    planted: Hoard
    folder: Path
    sealed: bytes = b""  # of a credential, as it lies in the database
    steps: dict[str, int] = field(default_factory=dict)  # what was done, and the status that came back
    database: Places = field(default_factory=list)
    store: Places = field(default_factory=list)
    files: Places = field(default_factory=list)


class Person:
    """A person with a browser."""

    def __init__(self, browser: httpx.Client, evidence: Evidence) -> None:
        self.browser, self.evidence = browser, evidence

    def sign_in(self) -> None:
        """Refused once, then signed in."""
        address = "/oidc/authenticate/?next=/welcome"
        walk_sign_in(self.browser, address, "ana@example.com", deny=True)
        answer = walk_sign_in(self.browser, address, "ana@example.com", name="Ana")
        self._note("sign-in", answer)

    def submit(self, step: str, path: str, **fields: str) -> httpx.Response:
        """A form as the page has it, filled in and sent."""
        page = self.browser.get(path).text
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
        kept = {name: hidden[name] for name in ("csrfmiddlewaretoken", "form_key") if name in hidden}
        return self._note(step, self.browser.post(path, data={**kept, **fields}))

    def _note(self, step: str, answer: httpx.Response) -> httpx.Response:
        self.evidence.steps[step] = answer.status_code
        return answer

    def minted(self, name: str, variable: str, answer: httpx.Response) -> str:
        """The secret that this answer shows once."""
        (value,) = map(str, re.findall(rf'value="([^"]+)"[^>]*data-secret="{variable}"', answer.text))
        return self.evidence.hoard.add(name, value, self.evidence.transcript.last)


@pytest.fixture(scope="module")
def evidence(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """The whole walk, done once."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(demo_identity_provider([origin]))
        vendor = stack.enter_context(demo_vendor_server())
        variables = {
            "OIDC_OP_DISCOVERY_URL": provider.discovery_url,
            "OIDC_RP_CLIENT_ID": provider.client_id,
            "OIDC_RP_CLIENT_SECRET": provider.client_secret,
            "LOG_LEVEL": "DEBUG",
            "STRIPE_SECRET_KEY": made_up("sk_test_{}"),
            "STRIPE_WEBHOOK_SECRET": made_up("whsec_{}"),
            "STRIPE_PRICE_ID": "price_1",
        }
        folder = tmp_path_factory.mktemp("hygiene") / "var"
        made = stack.enter_context(deployment(template, folder, port=port, variables=variables))
        operator = stack.enter_context(made.operator())
        operator.run("load_catalog", text=acme_catalog(vendor))
        with made.web():
            found = walk(made, operator, vendor)
        found.sealed = bytes.fromhex(operator.run("sealed_credential"))
        if WITH_LONG:  # the tables of the provider's library take half a minute
            copy_from_the_payment_provider(made, found.hoard, found.planted)
        found.database = list(database_places(made.database.dump()))
        found.files = list(file_places(made.folder, but=frozenset({SECRETS_FILE})))
        if address := os.environ.get("REDIS_URL"):
            found.store = list(redis_places(address))
        else:
            found.store = [place for place in found.files if "coordination" in place[0]]
        yield found


def walk(made: Deployment, operator: Operator, vendor: DemoVendor) -> Evidence:
    """Everything that a person, an agent and an operator can do, right and wrong."""
    hoard = Hoard()
    evidence = Evidence(hoard, Transcript(made.origin, hoard), Hoard(), made.folder)
    for name in ("OIDC_RP_CLIENT_SECRET", "SECRET_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"):
        hoard.add(name, made.environment[name])
    master_key = hoard.add("CREDENTIAL_KEYS", made.environment["CREDENTIAL_KEYS"].partition(":")[2])
    hoard.add("the master key", base64.b64decode(master_key))
    with evidence.transcript.client() as browser, evidence.transcript.client() as script:
        person = Person(browser, evidence)
        person.sign_in()
        org_id = make_organization(person)
        connect_vendor(person, org_id)
        destination_id = ship_logs(person, org_id, vendor)
        service_client = make_service_client(person, org_id)
        token = ask_for_tokens(script, evidence, service_client)
        call_tools(script, evidence, service_client, token)
        service_client = rotate_key(person, service_client)
        call_tools(script, evidence, service_client, token)
        for command in ("verify_credentials", "rotate_signing_key", "shipping_status"):
            (made.folder / "logs" / f"{command}.txt").write_text(made.manage(command))
        plant(evidence, operator, browser)
        stop(vendor.server.process)
        evidence.steps["call while the vendor is down"] = agent.call(
            script, service_client.agent_key, "acme_list_devices"
        ).status_code
        replace_unchecked(person, org_id)
        visit_everything(evidence, [browser, script], service_client, destination_id)
        person.submit(
            "revoke", f"{service_client_path(service_client)}/agent-key", action="revoke", typed_name="build bot"
        )
        person.submit("sign-out", "/profile", display_name="Ana")
        browser.post("/oidc/logout/", headers={"Referer": made.origin})
    return evidence


def vendor_key(hoard: Hoard) -> str:
    """An API key that the demo vendor takes."""
    return hoard.add("a vendor's API key", made_up("demo-{}"))


def make_organization(person: Person) -> str:
    """Its id. The name is planted: it must be found."""
    name = person.evidence.planted.add("the organization's name", made_up("planted {}"))
    answer = person.submit("create an organization", "/welcome", name=name)
    return answer.headers["Location"].rpartition("/")[2]


def connect_vendor(person: Person, org_id: str) -> None:
    """With a key that the vendor refuses, one that it takes, and another in its place."""
    hoard, path = person.evidence.hoard, f"/orgs/{org_id}/vendors/acme/settings"
    person.submit("connect with a wrong key", path, apiKey=hoard.add("a wrong API key", made_up("wrong-{}")))
    person.submit("connect with a field too many", path, apiKey=hoard.add("a spare key", made_up("x-{}")), other="1")
    person.submit("connect", path, apiKey=vendor_key(hoard))
    person.submit("replace the credential", path, apiKey=vendor_key(hoard))


def replace_unchecked(person: Person, org_id: str) -> None:
    """With keys that the vendor, which is down, cannot check: the first one is only asked about."""
    hoard, path = person.evidence.hoard, f"/orgs/{org_id}/vendors/acme/settings"
    person.submit("replace while the vendor is down", path, apiKey=vendor_key(hoard))
    person.submit("replace while the vendor is down, anyway", path, apiKey=vendor_key(hoard), anyway="1")


def ship_logs(person: Person, org_id: str, vendor: DemoVendor) -> str:
    """The id of a destination that was made, changed and tried; another one's platform wants a password."""
    hoard, path = person.evidence.hoard, f"/orgs/{org_id}/activity/log-shipping"
    address = {"label": "SIEM", "endpointUrl": vendor.server.origin}

    def value_of(name: str) -> str:
        return hoard.add(name, made_up("whsec-{}"))

    new = f"{path}/new/webhook"
    person.submit(
        "ship to nowhere", new, label="SIEM", endpointUrl="ftp://x", **{"config.secret": value_of("a secret")}
    )
    made = person.submit("ship", new, **address, **{"config.secret": value_of("a signing secret")})
    one = made.headers["Location"]
    person.submit("change the destination", one, **address, **{"config.secret": value_of("the next signing secret")})
    person.submit("test the destination", one, action="test")
    secret = {"config.username": "gateway", "config.password": value_of("a platform's password")}
    basic = person.submit("ship with a password", f"{path}/new/platform_b", **address, **secret)
    person.submit("test with the password", basic.headers["Location"], action="test")
    return one.rpartition("/")[2]


def make_service_client(person: Person, org_id: str) -> ServiceClient:
    """A service client with an agent key, from the pages that show their secrets once."""
    path, choices = f"/orgs/{org_id}/agents", {"access": "all", "expires_in_days": "30", "mcp_client": "claude-code"}
    created = person.submit("create an agent with its key", f"{path}/new", name="build bot", **choices)
    key = person.minted("the first agent key", "GATEWAY_KEY", created)
    hold_secret_half(person, "the first agent key", key)
    (client_id,) = set(re.findall(r"svc_[0-9A-Za-z]+", created.text))
    rotated = person.submit("make a client secret", f"{path}/{client_id}/client-secret")
    client_secret = person.minted("the client secret", "GATEWAY_CLIENT_SECRET", rotated)
    return ServiceClient(org_id, f"svc:{org_id}:{client_id}", client_id, client_secret, key)


def rotate_key(person: Person, service_client: ServiceClient) -> ServiceClient:
    """The service client with its next key."""
    name, path = "the second agent key", f"{service_client_path(service_client)}/agent-key"
    key = person.minted(name, "GATEWAY_KEY", person.submit("rotate the agent key", path, typed_name="build bot"))
    hold_secret_half(person, name, key)
    return ServiceClient(
        service_client.org_id, service_client.subject, service_client.client_id, service_client.client_secret, key
    )


def hold_secret_half(person: Person, name: str, key: str) -> None:
    """The half of the key that no page, log or address may have."""
    person.evidence.hoard.add(f"the secret half of {name}", key.rpartition("_")[2], person.evidence.transcript.last)


def service_client_path(service_client: ServiceClient) -> str:
    """Where the pages of this service client begin."""
    return f"/orgs/{service_client.org_id}/agents/{service_client.client_id}"


def ask_for_tokens(script: httpx.Client, evidence: Evidence, service_client: ServiceClient) -> str:
    """A token, by both ways to authenticate, and refusals."""
    hoard, wrong = evidence.hoard, made_up("wrong-secret-{}")
    hoard.add("a wrong client secret", wrong)
    form = {"grant_type": "client_credentials", "scope": "mcp:all", "client_id": service_client.client_id}
    token = agent.access_token(script, service_client)
    hoard.add("an access token", token, evidence.transcript.last)
    hoard.add("a token's signature", token.rpartition(".")[2], evidence.transcript.last)
    by_basic = script.post("/oauth/token", data=form, auth=(service_client.client_id, service_client.client_secret))
    hoard.add("another access token", by_basic.json()["access_token"], evidence.transcript.last)
    refusals = [
        script.post("/oauth/token", data={**form, "client_secret": wrong}),
        script.post("/oauth/token", data=form, auth=(service_client.client_id, wrong)),
        script.post(
            "/oauth/token", data={**form, "client_secret": service_client.client_secret, "scope": "mcp:nobody"}
        ),
        script.post("/oauth/token", json={**form, "client_secret": service_client.client_secret}),
        script.post("/oauth/token", params={"client_secret": service_client.client_secret}, data=form),
    ]
    assert all(400 <= answer.status_code < 500 for answer in refusals)
    evidence.steps["token"], evidence.steps["token by Basic"] = 200, by_basic.status_code
    return token


def call_tools(script: httpx.Client, evidence: Evidence, service_client: ServiceClient, token: str) -> None:
    """Calls that work, that fail, and that are refused."""
    hoard, key = evidence.hoard, service_client.agent_key
    for method in ("initialize", "tools/list", "ping", "no/such"):
        agent.rpc(script, key, method)
    evidence.steps["MCP call"] = agent.call(script, key, "acme_whoami").status_code
    evidence.steps["MCP call by JWT"] = agent.call(script, token, "acme_list_devices").status_code
    evidence.steps["CLI call"] = agent.cli(script, token, "acme", "list-devices", limit=1).status_code
    evidence.steps["tool error"] = agent.cli(script, token, "acme", "fail", reason="on fire").status_code
    agent.call(script, key, "acme_create_ticket", subject="leak?", requester={"name": "Ana", "email": "ana@x.example"})
    agent.call(script, key, "acme_no_such_tool")
    agent.cli(script, token, "nobody", "list")
    script.get("/v1/acme/cli/schema", headers=agent.bearer(token))
    half = uuid.uuid4().hex
    wrong_bearers = {
        "a wrong agent key": f"cak_{half[:12]}_{half}{half[:8]}",
        "a forged token": f"{token.rpartition('.')[0]}.{half}{half}{half[:22]}",
        "a made-up bearer": f"bearer-{half}",
    }
    for name, wrong in wrong_bearers.items():
        hoard.add(name, wrong)
        evidence.steps[f"call with {name}"] = agent.call(script, wrong, "acme_whoami").status_code
        for path in ("/v1/mcp", "/v1/acme/cli", "/oauth/token", "/welcome"):
            script.post(path, params={"access_token": wrong}, json={"token": wrong})
    basic = httpx.BasicAuth(service_client.client_id, service_client.client_secret)
    evidence.steps["call with Basic"] = script.post("/v1/mcp", json={}, auth=basic).status_code


def plant(evidence: Evidence, operator: Operator, browser: httpx.Client) -> None:
    """Values in every place that will be searched, so that a search of nothing cannot pass."""
    planted = evidence.planted
    browser.get("/" + planted.add("an address in the log", made_up("planted-{}")))
    operator.run("bump_epoch", name=planted.add("an epoch in the store", made_up("planted-{}")))
    planted.add("what a session holds", operator.run("session_with", value=made_up("planted-{}")))


def visit_everything(
    evidence: Evidence, clients: list[httpx.Client], service_client: ServiceClient, destination_id: str
) -> None:
    """Every address that the service has, asked for by the person and by somebody who is not signed in."""
    known = {
        "org_id": service_client.org_id,
        "vendor": "acme",
        "client_id": service_client.client_id,
        "destination_id": destination_id,
        "platform": "webhook",
    }
    addresses = sorted(set(all_addresses(get_resolver("gateway.urls"), known)))
    evidence.steps["addresses"] = len(addresses)
    for client in clients:
        for address in addresses:
            client.get(address)


def all_addresses(resolver: URLResolver, known: dict[str, str], before: str = "/") -> Iterator[str]:
    """The addresses of a URLconf; parts of a path that are not in `known` are made up."""

    def fill(match: re.Match[str]) -> str:
        made = str(uuid.uuid4()) if match["converter"] == "uuid:" else "1"
        return known.get(match["name"], made)

    for entry in resolver.url_patterns:
        path = before + re.sub(r"<(?P<converter>\w+:)?(?P<name>\w+)>", fill, str(entry.pattern).lstrip("^").rstrip("$"))
        if isinstance(entry, URLPattern):
            yield path.replace("\\Z", "").split("(?P", 1)[0]
        else:
            yield from all_addresses(entry, known, path)


# --- what is left behind ----------------------------------------------------------------------------------------------


def test_the_walk_did_what_it_should(evidence: Evidence) -> None:
    assert evidence.steps.pop("addresses") > 40
    assert evidence.steps == {
        "sign-in": 200,
        "create an organization": 302,
        "connect with a wrong key": 422,
        "connect with a field too many": 422,
        "connect": 302,
        "replace the credential": 302,
        "ship to nowhere": 422,
        "ship": 302,
        "change the destination": 302,
        "test the destination": 302,
        "ship with a password": 302,
        "test with the password": 302,
        "create an agent with its key": 201,
        "make a client secret": 201,
        "token": 200,
        "token by Basic": 200,
        "MCP call": 200,
        "MCP call by JWT": 200,
        "CLI call": 200,
        "tool error": 422,
        "call with a wrong agent key": 401,
        "call with a forged token": 401,
        "call with a made-up bearer": 401,
        "call with Basic": 400,
        "rotate the agent key": 201,
        "call while the vendor is down": 200,
        "replace while the vendor is down": 409,
        "replace while the vendor is down, anyway": 302,
        "revoke": 302,
        "sign-out": 302,
    }
    assert (
        sum("didn’t accept the test record: 4".encode() in answer.content for answer in evidence.transcript.answers)
        == 2
    )
    names = {secret.name for secret in evidence.hoard.secrets}
    assert {"an authorization code", "the cookie gateway_session", "the client secret", "an access token"} <= names
    assert len(evidence.hoard.secrets) > 20


def test_every_form_of_a_secret_is_recognized() -> None:
    secret = "k3y+/with=odd&characters"
    for before in (b"", b"x", b"xy", b"xyz"):
        whole = before + secret.encode() + b"after"
        for encoded in (whole, whole.hex().encode(), base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
            assert any(form in encoded for form in forms(secret)), (before, encoded)
    assert not any(form in base64.b64encode(b"nothing of the kind, whatever one looks for") for form in forms(secret))


def test_the_search_finds_what_is_there(evidence: Evidence) -> None:
    found = "\n".join(evidence.planted.found_in(evidence.database))
    assert "the organization's name in table orgs_organization" in found
    assert "the organization's name in table audit_adminauditentry" in found
    assert not WITH_LONG or "a customer's address in table djstripe_customer" in found
    assert any(evidence.sealed in content for place, content in evidence.database if "credentials_" in place)
    assert "what a session holds in table django_session (unpacked)" in found
    assert "an epoch in the store in " in "\n".join(evidence.planted.found_in(evidence.store))
    assert "an address in the log in file logs/" in "\n".join(evidence.planted.found_in(evidence.files))
    answers = "\n".join(evidence.planted.found_in_answers(evidence.transcript.answers))
    assert "the organization's name in the answer to GET /orgs/" in answers
    minted = [secret for secret in evidence.hoard.secrets if secret.minted_in is not None]
    assert len(minted) >= 7
    shown = Hoard([replace(secret, minted_in=None) for secret in minted]).found_in_answers(evidence.transcript.answers)
    assert {line.partition(" in ")[0] for line in shown} == {secret.name for secret in minted}


def test_no_secret_in_the_database(evidence: Evidence) -> None:
    assert evidence.hoard.found_in(evidence.database) == []


def test_no_secret_in_the_store(evidence: Evidence) -> None:
    assert evidence.store
    assert evidence.hoard.found_in(evidence.store) == []


def test_no_secret_in_a_file(evidence: Evidence) -> None:
    """Logs at their most talkative, and the database's file with what was deleted from it."""
    names = [name for name, _ in evidence.files]
    assert any("web.log" in name for name in names)
    assert evidence.hoard.found_in(evidence.files) == []


def test_no_token_of_any_kind_in_a_log(evidence: Evidence) -> None:
    logs = b"\n".join(content for name, content in evidence.files if name.startswith("file logs/"))
    assert re.findall(rb"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]+", logs) == []
    assert re.findall(rb"cak_[0-9A-Za-z]+_[0-9A-Za-z]+", logs) == []


def test_no_secret_in_an_answer(evidence: Evidence) -> None:
    assert len(evidence.transcript.answers) > 150
    assert evidence.hoard.found_in_answers(evidence.transcript.answers) == []


def test_the_secrets_file_is_its_owners_alone(evidence: Evidence) -> None:
    assert (evidence.folder / SECRETS_FILE).stat().st_mode & 0o077 == 0
