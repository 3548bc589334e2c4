"""Requests to vendors beside calls: the check of credentials, the health probe and the doctor, at each revision."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.catalog.vendor import Vendor
from proxy.control_plane.doctor import Finding, OpenedCredential, diagnose
from proxy.control_plane.health.probe import probe
from proxy.vendors.credential_probe import probe_credentials
from proxy.vendors.era_verdicts import Verdict
from tests.factories.catalog_text import parse_catalog
from tests.factories.vendor_pools import new_transport
from tests.fakes.era_vendor import EraVendor, era_vendor, says

ENTRY = """
[[vendor]]
slug = "acme"
name = "Acme"
url = "{url}"
docs_url = "https://vendor.example/docs"
"""


@pytest.fixture(params=["modern", "earlier"])
async def vendor(request: pytest.FixtureRequest) -> AsyncIterator[EraVendor]:
    async with era_vendor(request.param) as running:
        yield running


def entry(vendor: EraVendor) -> Vendor:
    (found,) = parse_catalog(ENTRY.format(url=vendor.url))
    return found


async def test_credentials_are_checked(vendor: EraVendor) -> None:
    answer = await probe_credentials(vendor.url, {}, "tools/list", {}, 10.0)
    assert (answer.status, answer.is_error, answer.tools) == (200, False, 1)
    vendor.answers = dict.fromkeys(["initialize", "server/discover"], says(401, b""))
    assert (await probe_credentials(vendor.url, {}, "tools/list", {}, 10.0)).status == 401
    vendor.answers = dict.fromkeys(["initialize", "server/discover"], says(200, b"<html>"))
    assert (await probe_credentials(vendor.url, {}, "tools/list", {}, 10.0)).tools is None


async def test_health_is_probed(vendor: EraVendor) -> None:
    transport = new_transport()
    found = await probe(transport, entry(vendor), deadline_s=5.0)
    assert (found.fault, found.remark, found.http_status) == ("", "", 200)
    vendor.answers = dict.fromkeys(["initialize", "server/discover"], says(400, b"<html>"))
    found = await probe(transport, entry(vendor), deadline_s=5.0)
    assert "answered initialize with HTTP 400" in found.remark
    await transport.aclose()


async def test_the_doctor_says_the_revision(vendor: EraVendor) -> None:
    verdict = Verdict("2026-07-28", 1_790_000_000.0, b"")
    found = await diagnose(entry(vendor), OpenedCredential(vendor.url, {}, verdict))
    lines = {each.what: each.found for each in found}
    assert not any(each.is_trouble for each in found), found
    assert lines["revision in use"] == "MCP 2026-07-28, as it said at 2026-09-21 14:13 UTC"
    assert lines["tools/list"].startswith("1 tool, ")
    if vendor.era == "modern":
        assert lines["server/discover"].startswith("it speaks MCP 2026-07-28, without sessions, ")
        assert "initialize" not in lines
        assert (await diagnose(entry(vendor), None))[0].found.endswith("it answers anyone")
    else:
        assert lines["server/discover"].startswith("an earlier revision: HTTP 400, ")
        assert lines["protocol version"] == "2025-11-25"


async def test_the_doctor_names_what_a_shim_says() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2025-11-25"]}}'
    async with era_vendor("earlier") as vendor:
        vendor.answers["server/discover"] = says(200, body)
        found: list[Finding] = await diagnose(entry(vendor), OpenedCredential(vendor.url, {}))
        (said,) = [each.found for each in found if each.what == "server/discover"]
        assert said.startswith("an earlier revision: it names 2025-11-25, ")
        assert "revision in use" not in {each.what for each in found}
