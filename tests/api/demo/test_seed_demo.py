"""seed_demo: the demo organization is found again, and what it rotates stands in the admin log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import check_password
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from credentials.models import Credential
from oauth_ext.models import AgentKey, Client
from orgs.models import KnownTool, Organization
from tests.factories.cast import Cast
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import load_vendor


def seed(folder: Path) -> dict[str, Any]:
    call_command("seed_demo", "--ready-file", str(folder / "ready.json"))
    found: dict[str, Any] = json.loads((folder / "ready.json").read_text())
    return found


def test_a_second_start_finds_everything_and_gives_new_secrets(cast: Cast, tmp_path: Path) -> None:
    first, second = seed(tmp_path), seed(tmp_path)
    same = ("org_id", "owner_email", "client_id")
    assert [first[name] for name in same] == [second[name] for name in same]
    client = Client.objects.get(client_id=second["client_id"])
    assert check_password(second["client_secret"], client.client_secret)
    assert not check_password(first["client_secret"], client.client_secret)
    assert second["agent_key"].startswith(AgentKey.objects.get(client=client).prefix)
    assert Organization.objects.count() == 3
    rows = AdminAuditEntry.objects.filter(org_id=second["org_id"]).order_by("timestamp", "id")
    assert list(rows.values_list("event_type", flat=True)) == [
        "organization.created",
        "service_client.created",
        "agent_key.created",
        "service_client.secret_rotated",
        "agent_key.rotated",
    ]
    log = str(list(rows.values()))
    for secret in (first["client_secret"], second["client_secret"], second["agent_key"]):
        assert secret not in log
    assert (tmp_path / "ready.json").stat().st_mode & 0o077 == 0


def acme(organization_id: str) -> Credential:
    return Credential.objects.get(organization_id=organization_id, vendor="acme")


def test_the_demos_vendor_is_verified_and_its_tools_are_known(cast: Cast, tmp_path: Path) -> None:
    with vendor_in_thread(api_key=None) as vendor:
        load_vendor(vendor.url, slug="acme")
        made = seed(tmp_path)
        assert seed(tmp_path)["org_id"] == made["org_id"]
    row = acme(made["org_id"])
    assert (row.check_verdict, row.check_tools) == ("validated", 3)
    assert KnownTool.objects.filter(organization_id=made["org_id"]).count() == 3
    rows = AdminAuditEntry.objects.filter(org_id=made["org_id"], event_type="credential.checked")
    assert rows.count() == 1, "what is verified is not asked again"


def test_a_vendor_that_is_away_is_verified_by_the_next_start(cast: Cast, tmp_path: Path) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="acme")
    made = seed(tmp_path)
    assert (acme(made["org_id"]).validated_at, acme(made["org_id"]).checked_at) == (None, None)
    with vendor_in_thread(api_key=None) as vendor:
        load_vendor(vendor.url, slug="acme")
        seed(tmp_path)
    assert acme(made["org_id"]).validated_at is not None


def test_there_is_no_demo_in_production(cast: Cast, tmp_path: Path, settings: Any) -> None:
    settings.EMBEDDED = False
    with pytest.raises(CommandError, match="embedded default only"):
        seed(tmp_path)
    assert Organization.objects.count() == 2
