"""axe on every page of the support console, in both themes, wide and small; a ticket from search to action."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visitor, new_email
from tests.browser.every_page import get, member_id
from tests.browser.looking import DARK_PHONE, SCREENS, Looker
from tests.e2e.started import PASSED_ON, ROOT, Started


def make_staff(service: Started, email: str) -> None:
    """As an operator does it."""
    machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    command = [sys.executable, "-m", "gateway.supervisor.manage"]
    arguments = f"make_staff {email} --without-tables"
    done = subprocess.run(
        command, cwd=ROOT, env={**machine, **service.variables, "ARGS": arguments}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_console_is_accessible(service: Started, visitor: Callable[..., Visitor], tmp_path: Path) -> None:
    owner, email = visitor(), new_email()
    org = owner.found_organization("Helpdesk")
    owner.has_acme(org)
    key = owner.agent_key(org)
    owner.call_tool(key, "acme_unknown")
    entries = get(owner, f"/audit?org_id={org.rpartition('/')[2]}")["entries"]
    request_id = entries[0]["requestId"]
    staff = visitor()
    staff.sign_in(email, "Sam Support")
    make_staff(service, email)
    organization = f"/admin/support/organizations/{org.rpartition('/')[2]}"
    person = member_id(owner, org, "Nina Novak")
    looker = Looker((*SCREENS, DARK_PHONE), tmp_path)
    for path in (
        "/admin/",
        "/admin/?q=Helpdesk",
        "/admin/?q=nothing+like+it",
        organization,
        f"{organization}/requests/{request_id}",
        f"{organization}/see-as/{person}?tool=acme_whoami",
        f"/admin/support/people/{person}",
        f"/admin/support/people/{person}/actions/end-sessions",
    ):
        looker.look(staff.open(path), path)
    assert not looker.found, "\n".join(looker.found)
    page = staff.open(f"/admin/?q={key.rpartition('_')[0]}")
    page.get_by_role("link", name=key.rpartition("_")[0]).click()
    page.get_by_role("link", name="Revoke key of Triage bot").click()
    page.get_by_label("Reason").fill("Ticket 4711")
    page.get_by_role("button", name="Revoke agent key").click()
    expect(page.get_by_text("Revoke agent key: done for Triage bot.")).to_be_visible()
    assert owner.call_tool(key).status_code == 401
