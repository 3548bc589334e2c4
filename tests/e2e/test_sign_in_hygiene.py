"""Connecting, renewing and failing at a vendor leave no token, code, verifier or client secret anywhere. Contract: 8"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e import agent
from tests.e2e.secret_search import Hoard, Transcript, database_places, file_places, redis_places
from tests.e2e.shared_gateway import Gateway
from tests.e2e.vendor_browser import COOKIE, OWN_PAGE, begun, connected, pressed, shared_page
from tests.factories.vendor_oauth import VENDOR
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")


class Life:
    """An organization and its owner, who use the vendor; every secret of it is hoarded."""

    def __init__(self, gateway: Gateway, vendor: OAuthVendor) -> None:
        self.gateway, self.vendor, self.hoard = gateway, vendor, Hoard()
        gateway.operator.run("load_catalog", text=VENDOR.format(url=vendor.mcp_url, more=""))
        self.bot = gateway.new_service_client(fields={})
        self.org_id = self.bot.org_id
        self.transcript = Transcript(gateway.web.origin, self.hoard)
        self.refused: list[int] = []

    def connect(self, browser: httpx.Client) -> None:
        for page, fields in ((shared_page(self.org_id), {}), (OWN_PAGE, self.own("connect"))):
            self.hoard.add(f"code of {page}", connected(browser, page, self.vendor, fields))
            self.hoard_all()

    def own(self, button: str) -> dict[str, str]:
        return {"org_id": self.org_id, "vendor": "signin", button: ""}

    def hoard_all(self) -> None:
        for name, value in self.gateway.operator.run("connection_secrets", org_id=self.org_id).items():
            self.hoard.add(name, value)

    def call(self, browser: httpx.Client) -> str:
        """The text of a call's result."""
        text: str = agent.call(browser, self.bot.agent_key, "signin_scopes").json()["result"]["content"][0]["text"]
        self.hoard_all()
        return text

    def fail_to_sign_in(self, browser: httpx.Client, page: str) -> None:
        """The vendor refuses the code and repeats it; a browser that is signed out comes back, too."""
        address = begun(browser, page)
        for verifier in self.gateway.operator.run("sign_in_verifiers", org_id=self.org_id):
            self.hoard.add(f"verifier of {verifier[:4]}", verifier)
        back = self.vendor.sign_in(address)
        code = httpx.URL(back).params["code"]
        self.hoard.add(f"code of {code[:4]}", code)
        with self.transcript.client() as nobody:
            self.refused.append(nobody.get(back).status_code)
        self.vendor.control(refresh_fault="echo")
        self.refused.append(browser.get(back).status_code)
        self.refused.append(browser.get(back).status_code)
        self.vendor.control(refresh_fault="")
        begun(browser, page)

    def read(self, browser: httpx.Client) -> None:
        for path in (
            *(shared_page(self.org_id), OWN_PAGE, f"/orgs/{self.org_id}/admin-log"),
            *(f"/api/orgs/{self.org_id}/vendor-connections", "/api/profile/vendor-connections"),
        ):
            browser.get(path)

    def places(self) -> Iterator[tuple[str, bytes]]:
        deployment = self.gateway.deployment
        yield from database_places(deployment.database.dump())
        yield from file_places(deployment.folder / "logs", but=frozenset())
        if "REDIS_URL" in deployment.environment:
            yield from redis_places(deployment.environment["REDIS_URL"])


@pytest.fixture
def life(gateway: Gateway, oauth_vendor: OAuthVendor) -> Life:
    return Life(gateway, oauth_vendor)


def test_no_secret_is_left(life: Life) -> None:
    run, org = life.gateway.operator.run, {"org_id": life.org_id}
    with life.transcript.client() as browser:
        browser.cookies.set(COOKIE, run("sign_in_owner", **org))
        life.connect(browser)
        assert life.call(browser) == "read"
        life.read(browser)
        run("make_connections_due", **org)
        assert life.call(browser) == "read"  # renewed
        problems = []
        for fault in ("echo", "garbage", "500"):
            life.vendor.control(refresh_fault=fault)
            run("make_connections_due", **org)
            life.call(browser)
            life.read(browser)
            problems.append(run("connection_facts", **org)[0]["problem"])
        life.vendor.control(refresh_fault="")
        life.fail_to_sign_in(browser, shared_page(life.org_id))
        life.vendor.end_all()
        run("make_connections_due", **org)
        assert "sign in again" in life.call(browser)
        life.read(browser)
        assert pressed(browser, OWN_PAGE, life.own("disconnect")).status_code == 302
        run("run_task", name="credentials.revoke_at_vendors")
    assert all(problems)
    assert life.refused == [302, 502, 410]
    # Access and refresh tokens of two connections and a renewal, three codes, two verifiers, a client's secret.
    assert len(life.hoard.secrets) >= 11
    assert not life.hoard.found_in_answers(life.transcript.answers)
    places = list(life.places())
    assert any("credentials_vendorconnection" in place for place, _ in places)
    assert not life.hoard.found_in(places)


def test_the_search_would_find_them(life: Life) -> None:
    secret = life.hoard.add("a token", "at-0123456789abcdef")
    life.gateway.operator.run("session_with", value=secret)
    assert life.hoard.found_in(life.places())
