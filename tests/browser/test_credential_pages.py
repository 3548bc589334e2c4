"""A vendor's credentials in the browser: replaced, checked again, named keys, disconnected."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.test_pages import NewVisitor

SECOND = "demo-browser-tests-0003"


def test_a_replacement_keeps_the_old_until_the_vendor_accepts_it(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    agent = someone.agent_key(org)
    before = someone.call_tool(agent).text
    page = someone.open(f"{org}/vendors/acme/settings")
    expect(page.get_by_role("row").filter(has_text="Organization")).to_contain_text("Accepted")

    page.get_by_label("API key").fill("a-wrong-key")
    page.get_by_role("button", name="Replace").click()
    expect(page.get_by_role("alert")).to_contain_text("Acme RMM rejected these credentials (401). Nothing was saved.")
    expect(page.get_by_label("API key")).to_have_value("")
    expect(page.get_by_text("Your current credentials stay active.")).to_be_visible()
    assert "a-wrong-key" not in page.content()
    assert someone.call_tool(agent).text == before

    page.get_by_label("API key").fill(SECOND)
    page.get_by_role("button", name="Replace").click()
    expect(page.get_by_role("status").filter(has_text="is connected.")).to_be_visible()
    after = someone.call_tool(agent)
    assert not after.json()["result"].get("isError")
    assert after.text != before


def test_a_named_key_serves_a_team_and_disconnecting_wants_a_name(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    someone.post(f"/api{org}/teams", name="Night shift")
    agent = someone.agent_key(org)
    assert someone.call_tool(agent).status_code == 200
    page = someone.open(f"{org}/vendors/acme/settings")
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_role("status").filter(has_text="The vendor accepted the credentials.")).to_be_visible()

    page.get_by_role("link", name="Add a key").click()
    page.get_by_label("Name", exact=True).fill("Reporting")
    page.get_by_label("API key").fill(SECOND)
    page.get_by_role("button", name="Add key").click()
    row = page.get_by_role("row").filter(has_text="Key Reporting")
    expect(row).to_contain_text("not used: no team yet")
    row.get_by_role("link", name="Edit").click()
    page.get_by_role("combobox", name="Team").select_option(label="Night shift")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="The key is saved.")).to_be_visible()
    page.get_by_role("link", name="all credentials of Acme RMM").click()
    expect(row).to_contain_text("team Night shift")

    page.get_by_role("link", name="Disconnect Acme RMM").click()
    expect(page.get_by_text("1 call in the last 30 days, 1 in the last 24 hours.")).to_be_visible()
    disconnect = page.get_by_role("button", name="Disconnect")
    expect(disconnect).to_be_disabled()
    page.get_by_label("Type Acme RMM to confirm").fill("Acme RMM")
    disconnect.click()
    expect(page.get_by_role("status").filter(has_text="Acme RMM is disconnected.")).to_be_visible()
    assert someone.call_tool(agent).json()["result"]["isError"]
    someone.open(f"{org}/vendors/acme/settings")
    expect(row).to_contain_text("team Night shift")
