"""GET /api/orgs/:orgId/vendor-health."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors.destination import PoolKey
from proxy.vendors.era_verdicts import EraVerdicts
from proxy.vendors.shared_circuits import SharedCircuit, publish
from tests.factories.api import Api
from tests.factories.health import connected_vendor, put_health

PATH = "/orgs/{org}/vendor-health"


@pytest.mark.parametrize("who", ["owner", "admin", "member"])
def test_every_member_reads_the_states_by_name(api: Api, shared: SQLiteStore, who: str) -> None:
    for slug in ("zeta", "alpha", "hosted"):
        connected_vendor(api.cast.org, slug, hosted=slug == "hosted")
    health = put_health(shared, "zeta", HealthStatus.DOWN, error_detail="could not be reached, 3 failures in a row")
    put_health(shared, "hosted", HealthStatus.HEALTHY)
    assert health.last_checked is not None
    closed = {"protocolVersion": "", "protocolVersionAt": None, "circuit": "closed", "circuitRetryAt": None}
    unknown = {
        "status": "unknown",
        "lastChecked": None,
        "latencyMs": None,
        "version": "",
        "errorDetail": None,
        **closed,
    }
    assert api.get(who, PATH)["vendors"] == [
        {"vendorSlug": "alpha", "displayName": "Alpha", **unknown},
        {"vendorSlug": "hosted", "displayName": "Hosted", **unknown},
        {
            "vendorSlug": "zeta",
            "displayName": "Zeta",
            "status": "down",
            "lastChecked": clock.rfc3339(health.last_checked),
            "latencyMs": 12,
            "version": "1.2",
            "errorDetail": "could not be reached, 3 failures in a row",
            **closed,
        },
    ]


def test_calls_that_are_held_back(api: Api, shared: SQLiteStore) -> None:
    """The vendor's own circuit and those of the organization's credentials are shown, and no others."""
    ids = {slug: connected_vendor(api.cast.org, slug).id for slug in ("alpha", "beta", "gamma", "delta")}
    foreign = connected_vendor(api.cast.other_org, "delta").id
    soon, late = clock.now() + timedelta(seconds=20), clock.now() + timedelta(seconds=40)
    for name, until in (
        ("alpha", soon),
        (f"alpha:{ids['alpha']}", late),
        (f"beta:{ids['beta']}", clock.now() - timedelta(seconds=1)),
        (f"delta:{foreign}", late),
    ):
        publish(shared, name, SharedCircuit(5, clock.now() - timedelta(seconds=5), until))
    publish(shared, "gamma", SharedCircuit(5, clock.now(), late))
    publish(shared, "gamma", None)
    found = {each["vendorSlug"]: each for each in api.get("member", PATH)["vendors"]}
    assert {slug: each["circuit"] for slug, each in found.items()} == {
        "alpha": "open",
        "beta": "half_open",
        "gamma": "closed",
        "delta": "closed",
    }
    assert found["alpha"]["circuitRetryAt"] == clock.rfc3339(late)
    assert found["gamma"]["circuitRetryAt"] is None
    assert found["alpha"]["errorDetail"] is None, "which belongs to the probe"


def test_the_revision_that_a_credential_of_the_organization_found_last(api: Api, shared: SQLiteStore) -> None:
    own, foreign = connected_vendor(api.cast.org, "alpha"), connected_vendor(api.cast.other_org, "alpha")
    kept = async_to_sync(EraVerdicts(shared, b"s" * 32, max_verdicts=10, now_s=lambda: 1_790_000_000.0).keep)
    url = "https://alpha.example.com/mcp"
    kept(PoolKey.of(api.cast.org.id, "alpha", own.id, url, {}), "2026-07-28")
    kept(PoolKey.of(api.cast.other_org.id, "alpha", foreign.id, url, {}), "2025-11-25")
    for who, org, version in (
        ("member", api.cast.org, "2026-07-28"),
        ("other_owner", api.cast.other_org, "2025-11-25"),
    ):
        (found,) = api.get(who, f"/orgs/{org.id}/vendor-health")["vendors"]
        assert (found["protocolVersion"], found["protocolVersionAt"]) == (version, "2026-09-21T14:13:20.000Z")


@pytest.mark.parametrize("status", [HealthStatus.HEALTHY, HealthStatus.REACHABLE])
def test_a_vendor_that_answers_has_no_error(api: Api, shared: SQLiteStore, status: HealthStatus) -> None:
    connected_vendor(api.cast.org, "alpha")
    put_health(shared, "alpha", status)
    (entry,) = api.get("member", PATH)["vendors"]
    assert (entry["status"], entry["errorDetail"]) == (status.value, None)


def test_a_state_that_nobody_refreshed_is_unknown(api: Api, shared: SQLiteStore) -> None:
    connected_vendor(api.cast.org, "alpha")
    put_health(shared, "alpha", HealthStatus.DOWN, error_detail="gone", age_s=200)
    (entry,) = api.get("member", PATH)["vendors"]
    assert (entry["status"], entry["lastChecked"], entry["errorDetail"]) == ("unknown", None, None)


def test_another_organizations_vendors_are_not_there(api: Api, shared: SQLiteStore) -> None:
    connected_vendor(api.cast.other_org, "alpha")
    assert api.get("owner", PATH) == {"vendors": []}


@pytest.mark.parametrize(
    ("who", "method", "path", "refusal"),
    [
        ("nobody", "GET", PATH, (401, "unauthenticated")),
        ("stranger", "GET", PATH, (404, "not_found")),
        ("other_owner", "GET", PATH, (404, "not_found")),
        ("owner", "GET", "/orgs/nothing/vendor-health", (404, "not_found")),
        ("owner", "POST", PATH, (405, "method_not_allowed")),
    ],
)
def test_refusals(api: Api, shared: SQLiteStore, who: str, method: str, path: str, refusal: tuple[int, str]) -> None:
    assert api.refused(who, method, path) == refusal
