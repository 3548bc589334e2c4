"""Rows 54, 55 and 59: limits that cannot be split, and markup in every free text."""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape
from pathlib import Path

from django.db import connection

from audit.models import AdminAuditEntry, RequestAuditEntry
from bench.page_walk import page_paths
from gateway.coordination.rules import Rule
from oauth_ext.models import Client
from orgs.models import Organization, User
from tests.api.audit.log_rows import add_call, add_change
from tests.api.limits.test_limits import LIMITED
from tests.api.pages.test_markup import Strict
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.things import things
from tests.attacks.world import CALL_ROW, World

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 8
LIMIT = 50  # in place of 5,000: the count is exact at every size (tests/api/limits/test_tool_calls.py counts 5,008)


@attack(54, {path: (path, limit) for path, limit in LIMITED})
def another_address_or_spelling_for_a_limit(world: World, asked: tuple[str, int]) -> None:
    path, limit = asked
    exact = path.format(org=world.cast.org.id, client=world.tenant.client.client_id, token="x" * 43).replace(
        "/acme", "/fake"
    )
    bodies = {"credentials/fake": {"apiKey": ""}, "keys": {"name": ""}}
    body = next((value for end, value in bodies.items() if exact.endswith(end)), {})
    statuses = []
    for number in range(limit + 1):
        for spelling in (f"{exact}/", exact.upper().replace("/API/", "/api/").replace("/INVITE/", "/Invite/")):
            assert world.send("POST", spelling, who="owner", body=body).status_code == 404
        headers = [("x-forwarded-for", f"203.0.113.{number}"), ("x-real-ip", f"10.0.0.{number}")]
        target, address = f"{exact}?attempt={number}", f"2001:db8::{number:x}"
        answer = world.send("POST", target, who="owner", body=body, headers=headers, address=address)
        statuses.append(answer.status_code)
    assert 429 not in statuses[:-1], statuses
    with world.watched():
        refused(answer, 429, "rate_limited")
        assert int(answer.headers["Retry-After"]) > 0


@attack(54)
def another_address_of_the_same_household(world: World) -> None:
    world.settings.BACKSTOP = Rule(f"attack 54 {world.address}", limit=3, window_s=60)
    with world.watched():
        for number in range(3):
            refused(world.send("GET", "/api/profile", address=f"2001:db8:1:2::{number}"), 401, "unauthenticated")
        refused(world.send("GET", "/api/profile", address="2001:db8:1:2:ffff::9"), 429, "rate_limited")
        refused(world.send("GET", "/api/profile", address="2001:db8:1:3::1"), 401, "unauthenticated")


@attack(55)
def calls_of_eight_workers_on_three_routes(world: World) -> None:
    """One subject, 8 processes, all routes at once: exactly the limit passes."""
    token, calls = world.token(), LIMIT // WORKERS + 3
    command = [sys.executable, "-m", "tests.attacks.workers", str(connection.settings_dict["NAME"])]
    command += [world.tenant.agent_key, token, str(LIMIT), str(WORKERS), str(calls)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]
    statuses: dict[str, int] = json.loads(done.stdout)
    assert statuses == {"200": LIMIT, "429": WORKERS * calls - LIMIT}, statuses
    assert RequestAuditEntry.objects.filter(status="success").count() == LIMIT
    assert world.vendor.seen["tools/call"] == LIMIT
    world.settings.TOOL_CALLS = Rule("attack 55", limit=LIMIT, window_s=3600)
    with world.watched(CALL_ROW):  # refused calls are counted in one row
        for answer in (world.call(world.tenant.agent_key), world.call(token, target="/v1/fake/mcp")):
            refused(answer, 429, "rate_limited")
            assert 0 < int(answer.headers["Retry-After"]) <= 3600
        refused(world.cli(token), 429)


WORDS = {
    "a script": "<script>alert(1)</script>",
    "an image": "<img src=x onerror=alert(1)>",
    "an address": "javascript:alert(1)",
    "an attribute": '" onmouseover="alert(1)',
    "a template": "{{7*7}}{% debug %}",
}


@attack(59, WORDS)
def markup_in_every_free_text(world: World, word: str) -> None:
    ids = things(world, word)
    Organization.objects.filter(pk=world.cast.org.pk).update(name=f"Acme {word}")
    User.objects.filter(pk=world.cast.user("member").pk).update(display_name=word, first_name=word, last_name=word)
    Client.objects.filter(pk=world.tenant.client.pk).update(name=word)
    world.vendor.tools = [{**tool, "description": word, "title": word} for tool in world.vendor.tools]
    add_call(world.cast.org.id, user_label=word, tool=word, client_name=word)
    add_change(world.cast.org.id, actor_label=word, target_label=word, metadata={word: word})
    AdminAuditEntry.objects.filter(org_id=world.cast.org.id).update(actor_label=word)
    pages = page_paths(ids)
    shown = 0
    with world.watched():
        for path in pages.values():
            answer = world.send("GET", path, who="owner", accept="text/html")
            assert answer.status_code not in {429, 500, 503}, (path, answer.status_code)
            assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                page = Strict(answer.text)
                assert page.inline == [], (path, page.inline)
                assert word not in answer.text or "<" not in word, path
                assert 'href="javascript:' not in answer.text
                assert "\x1b" not in answer.text
                shown += escape(word) in answer.text
    assert shown > 8, f"only {shown} pages show the word"
