"""explain_access: each step of a call with the failing one and who can fix it, and the same as an object."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from credentials.models import Credential, OrganizationDataKey
from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from oauth_ext.models import Client
from oauth_ext.services.service_client_item_lists import set_client_item_list
from orgs.access_rules import ToolLimit
from orgs.allowed_items import ItemType
from orgs.models import Membership, ServerAccess
from orgs.services.item_access import set_item_list
from orgs.services.known_tools import record_tools
from proxy.control_plane.explanation import explain_access
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors import shared_circuits
from proxy.vendors.shared_circuits import SharedCircuit
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.health import put_health
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant, restrict_tools

TOOL = "acme_list"
STEPS = ("token", "quota", "grant", "credential", "allowlist", "vendor")


@pytest.fixture
def tenant(cast: Cast) -> Tenant:
    load_vendors("acme")
    connect(cast.org, cast.user("owner"), "acme", apiKey="key")
    return make_tenant(cast.org, cast.user("owner"))


def failing(subject: str, tool: str = TOOL) -> str | None:
    step = explain_access(subject, tool).failing
    if step is not None:
        assert step.remedy
    return step.name if step else None


def test_a_call_that_would_go_through(cast: Cast, tenant: Tenant) -> None:
    for subject in (str(cast.user("owner").id), tenant.client.subject):
        explanation = explain_access(subject, TOOL)
        assert explanation.failing is None
        assert tuple(step.name for step in explanation.steps) == STEPS


def test_a_token_of_nobody(cast: Cast, tenant: Tenant) -> None:
    for subject in ("nobody", str(cast.org.id), str(cast.user("stranger").id), f"svc:{cast.org.id}:svc_nobody"):
        assert failing(subject) == "token"
    assert failing(tenant.client.subject.replace(str(cast.org.id), str(cast.other_org.id))) == "token"
    Client.objects.update(expires_at=clock.now())
    assert failing(tenant.client.subject) == "token"


def test_a_missing_grant(cast: Cast, tenant: Tenant) -> None:
    member = cast.user("member")
    assert failing(str(member.id)) == "grant"
    row = Membership.objects.get(user=member)
    ServerAccess.objects.create(organization=cast.org, membership=row, vendor="acme")
    assert failing(str(member.id)) is None
    assert failing(str(member.id), "nowhere_list") == "grant"


def test_a_missing_or_broken_credential(cast: Cast, tenant: Tenant) -> None:
    load_vendors("globex")
    assert failing(str(cast.user("owner").id), "globex_list") == "credential"
    OrganizationDataKey.objects.update(wrapped_key=b"\x01" + bytes(60))
    from credentials.sealing import DATA_KEYS

    DATA_KEYS.forget(cast.org.id)
    assert failing(str(cast.user("owner").id)) == "credential"


def test_a_tool_that_is_not_listed(cast: Cast, tenant: Tenant) -> None:
    restrict_tools(cast.org, "acme_other", vendor="acme")
    assert failing(tenant.client.subject) == "allowlist"
    assert failing(tenant.client.subject, "acme_other") is None
    assert failing(str(cast.user("owner").id)) is None
    restrict_tools(cast.org, "list", vendor="acme")  # a vendor that does not prefix its own names
    assert failing(tenant.client.subject) is None


def test_a_tool_that_the_vendor_did_not_list(cast: Cast, tenant: Tenant) -> None:
    caution = "However, Acme did not list acme_gone the last time its tools were loaded, so a call would fail."

    def detail(tool: str) -> str:
        return next(
            step.detail for step in explain_access(tenant.client.subject, tool).steps if step.name == "allowlist"
        )

    assert caution not in detail("acme_gone"), "the vendor was never asked"
    record_tools(organization=cast.other_org, vendor="acme", definitions={"acme_other": b"{}"})
    assert caution not in detail("acme_gone")
    record_tools(organization=cast.org, vendor="acme", definitions={TOOL: b"{}", "plain": b"{}"})
    assert detail("acme_gone").endswith(caution)
    assert caution not in detail(TOOL) + detail("acme_plain")
    assert failing(tenant.client.subject, "acme_gone") is None


def test_a_quota_that_is_used_up(cast: Cast, tenant: Tenant, settings: LazySettings) -> None:
    settings.TOOL_CALLS = Rule(f"tools-{uuid.uuid4().hex}", limit=1, window_s=3600)
    for _ in range(3):  # looking is free
        assert failing(tenant.client.subject) is None
    assert backend.current().hit(settings.TOOL_CALLS, tenant.client.subject).allowed
    step = explain_access(tenant.client.subject, TOOL).failing
    assert step is not None
    assert (step.name, step.detail) == ("quota", "1 of 1 calls in the last hour.")
    assert re.match(r"The next call is possible in (60|61) min", step.remedy)
    assert failing(str(cast.user("owner").id)) is None


def test_a_vendor_that_is_down(cast: Cast, tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(tmp_path / "health.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    assert explain_access(tenant.client.subject, TOOL).steps[-1].detail == "Acme: Checking…"
    put_health(store, "acme", HealthStatus.DEGRADED)
    assert failing(tenant.client.subject) is None
    put_health(store, "acme", HealthStatus.DOWN, error_detail="timed out after 5 s")
    assert failing(tenant.client.subject) is None, "no circuit is open: the call is sent"
    assert explain_access(tenant.client.subject, TOOL).steps[-1].detail == (
        "Acme: Not responding, timed out after 5 s. Calls are still attempted and will probably fail."
    )
    put_health(store, "acme", HealthStatus.HEALTHY, remark="answered initialize with HTTP 404")
    assert explain_access(tenant.client.subject, TOOL).steps[-1].detail == (
        "Acme: Connected, answered initialize with HTTP 404"
    )


def test_a_vendor_whose_circuit_is_open(
    cast: Cast, tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(tmp_path / "health.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    now = clock.now()
    credential = Credential.objects.get(organization=cast.org)
    for name in ("acme", f"acme:{credential.id}"):
        shared_circuits.publish(store, name, SharedCircuit(7, now, now + timedelta(seconds=30)))
        step = explain_access(tenant.client.subject, TOOL).failing
        assert step is not None
        assert (step.name, step.detail) == (
            "vendor",
            "Acme couldn’t be reached 7 times in a row: calls are paused.",
        )
        assert "UTC" in step.remedy
        shared_circuits.publish(store, name, None)
    shared_circuits.publish(store, f"acme:{uuid.uuid4()}", SharedCircuit(7, now, now + timedelta(seconds=30)))
    assert failing(tenant.client.subject) is None, "somebody else's credential"
    shared_circuits.publish(store, "acme", SharedCircuit(7, now, now))
    put_health(store, "acme", HealthStatus.DOWN, error_detail="could not be reached")
    assert failing(tenant.client.subject) is None, "the next call is let through"
    assert explain_access(tenant.client.subject, TOOL).steps[-1].detail == (
        "Acme: Not responding, could not be reached."
        " Acme couldn’t be reached 7 times in a row. The next call is a retry."
    )


def test_a_name_is_explained_for_the_vendor_that_owns_it(cast: Cast, tenant: Tenant) -> None:
    load_vendor("https://pro.example/mcp", slug="acme-pro", prefix="acme_pro")
    assert failing(str(cast.user("owner").id), "acme_pro_list") == "credential", "acme is connected, acme-pro is not"
    connect(cast.org, cast.user("owner"), "acme-pro", apiKey="key")
    assert failing(str(cast.user("owner").id), "acme_pro_list") is None
    assert failing(str(cast.user("owner").id), "acme__pro_list") is None


def test_a_used_up_quota_goes_before_everything_a_call_would_ask_next(
    cast: Cast, tenant: Tenant, settings: LazySettings
) -> None:
    settings.TOOL_CALLS = Rule(f"tools-{uuid.uuid4().hex}", limit=1, window_s=3600)
    member = str(cast.user("member").id)
    assert failing(member) == "grant"
    assert backend.current().hit(settings.TOOL_CALLS, member).allowed
    assert failing(member) == failing(member, "nowhere_list") == "quota"


def test_only_subjects_of_the_organization_that_is_named(cast: Cast, tenant: Tenant) -> None:
    for subject in (tenant.client.subject, str(cast.user("owner").id)):
        assert explain_access(subject, TOOL, org_id=cast.org.id).failing is None
        refused = explain_access(subject, TOOL, org_id=cast.other_org.id)
        assert [step.name for step in refused.steps] == ["token"]
        assert "Acme" not in refused.steps[0].detail


def test_the_command_prints_each_step_and_who_can_help(cast: Cast, tenant: Tenant) -> None:
    out = StringIO()
    with pytest.raises(CommandError, match=r"Refused at grant\. An admin of Acme can give") as refused:
        call_command("explain_access", str(cast.user("member").id), TOOL, stdout=out)
    assert refused.value.returncode == 2
    lines = out.getvalue().splitlines()
    assert [line[:5] for line in lines] == ["ok   ", "ok   ", "DENY ", *["ok   "] * 3]
    assert lines[2] == "DENY grant: Member has no access to Acme."
    out = StringIO()
    call_command("explain_access", str(cast.user("owner").id), TOOL, "--org", str(cast.org.id), stdout=out)
    assert "DENY" not in out.getvalue()
    with pytest.raises(CommandError, match="isn't the id of an organization"):
        call_command("explain_access", str(cast.user("owner").id), TOOL, "--org", "acme")


def item_failing(subject: str, kind: ItemType, name: str) -> tuple[str, str] | None:
    step = explain_access(subject, name, kind=kind).failing
    if step is not None:
        assert step.remedy
    return (step.name, step.detail) if step else None


def test_resources_and_prompts(cast: Cast, tenant: Tenant) -> None:
    owner, subject = cast.user("owner"), tenant.client.subject
    address, prompt = "acme+file:///a.md", "acme_greet"
    role: dict[str, Any] = {"actor": owner, "organization": cast.org, "vendor": "acme", "role": "member"}
    assert item_failing(subject, ItemType.RESOURCES, address) is None
    assert item_failing(subject, ItemType.RESOURCES, "file:///a.md") == ("grant", "No vendor is named: file:///a.md.")
    restrict_tools(cast.org, "acme_list", vendor="acme")
    for kind, name in ((ItemType.RESOURCES, address), (ItemType.PROMPTS, prompt)):
        found = item_failing(subject, kind, name)
        assert found is not None
        assert found[0] == "allowlist"
        assert "has no list of its" in found[1]
    set_item_list(**role, kind="resources", entries=["file:///{name}"])
    set_item_list(**role, kind="prompts", entries=["other"])
    assert item_failing(subject, ItemType.RESOURCES, address) is None
    assert item_failing(subject, ItemType.PROMPTS, prompt) == (
        *("allowlist", f"acme_greet isn’t on the list of prompts that {tenant.client.name} can use."),
    )
    whose: dict[str, Any] = {"actor": owner, "organization": cast.org, "client": tenant.client, "vendor": "acme"}
    set_client_item_list(**whose, kind="resources", entries=[])
    step = explain_access(subject, address, kind=ItemType.RESOURCES).failing
    assert step is not None
    assert (step.limit, step.kind, step.title) == (ToolLimit.OWN, ItemType.RESOURCES, "Allowed resources")
    assert item_failing(str(owner.id), ItemType.RESOURCES, address) is None


def test_an_app_follows_its_tool(cast: Cast, tenant: Tenant) -> None:
    definition = json.dumps({"name": TOOL, "_meta": {"ui": {"resourceUri": "ui://board"}}}).encode()
    record_tools(organization=cast.org, vendor="acme", definitions={TOOL: definition})
    assert item_failing(tenant.client.subject, ItemType.RESOURCES, "ui://acme+board") is None
    restrict_tools(cast.org, "other", vendor="acme")
    found = item_failing(tenant.client.subject, ItemType.RESOURCES, "ui://acme+board")
    assert found == ("allowlist", f"It’s the app of a tool that {tenant.client.name} can’t call ({TOOL}).")
    assert item_failing(tenant.client.subject, ItemType.RESOURCES, "UI://acme+bo%61rd") == found
    restrict_tools(cast.org, TOOL, vendor="acme")
    assert item_failing(tenant.client.subject, ItemType.RESOURCES, "ui://acme+board") is None


def test_lists_with_the_two_spellings_of_a_prompt(cast: Cast, tenant: Tenant) -> None:
    """The vendor has one of them: each list refuses the other's."""
    owner = cast.user("owner")
    whose: dict[str, Any] = {"actor": owner, "organization": cast.org, "vendor": "acme", "kind": "prompts"}
    set_item_list(**whose, role="member", entries=["greet"])
    set_client_item_list(**whose, client=tenant.client, entries=["acme_greet"])
    found = item_failing(tenant.client.subject, ItemType.PROMPTS, "acme_greet")
    assert found == ("allowlist", f"acme_greet isn’t on the list of prompts that {tenant.client.name} can use.")
    set_item_list(**whose, role="member", entries=["acme_greet"])
    assert item_failing(tenant.client.subject, ItemType.PROMPTS, "acme_greet") is None
