"""Agents as people make and limit them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.conftest import Visitor

NewVisitor = Callable[..., Visitor]


def test_an_agent_with_one_vendor_and_read_only_makes_its_first_call(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    page = someone.open(f"{org}/agents")
    page.get_by_role("link", name="New agent").click()
    page.get_by_label("Name").fill("Triage bot")
    expect(page.get_by_label("Acme RMM")).to_be_hidden()
    page.get_by_label("Only chosen vendors").check()
    page.get_by_label("Acme RMM").check()
    page.get_by_label("Only read-only tools").check()
    page.get_by_label("Client to set up").select_option("Codex")
    page.get_by_role("button", name="Create agent").click()

    expect(page.get_by_role("heading", name="2. Codex")).to_be_visible()
    key = page.get_by_label("Agent key", exact=True).input_value()
    expect(page.get_by_role("region", name="Codex", exact=True)).to_contain_text(f"export GATEWAY_KEY={key}")
    expect(page.get_by_text("Waiting for its first call")).to_be_visible()
    assert key not in page.url
    assert not someone.call_tool(key).json()["result"].get("isError")
    expect(page.get_by_text("First call received").first).to_be_visible()
    refused = someone.call_tool(key, "acme_delete_ticket").json()
    assert "read-only" in str(refused)

    page.reload()  # sends the same form again
    expect(page.get_by_role("status").filter(has_text="Already created.")).to_be_visible()
    assert key not in page.content()
    page.get_by_role("link", name="Triage bot").click()
    expect(page.get_by_text("Only Acme RMM.")).to_be_visible()
    expect(page.get_by_text("Only read-only tools.")).to_be_visible()


def test_access_of_an_agent_is_changed_on_its_page_and_in_the_matrix(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    key = someone.agent_key(org, "Patch report")
    page = someone.open(f"{org}/access?view=agents")
    row = page.get_by_role("row").filter(has_text="Patch report")
    expect(row).to_contain_text("all vendors")
    expect(row.get_by_role("checkbox")).to_have_count(0)

    row.get_by_role("link", name="Patch report").click()
    page.get_by_role("button", name="Allow only chosen vendors").click()
    page.get_by_role("button", name="Remove access to Acme RMM").click()
    expect(page.get_by_role("status").filter(has_text="can no longer use Acme RMM")).to_be_visible()
    assert someone.call_tool(key).json()["result"]["isError"]

    someone.open(f"{org}/access?view=agents")
    row.get_by_label("Give Patch report access to Acme RMM").check()
    page.get_by_role("button", name="Save vendor access").click()
    expect(page.get_by_role("status").filter(has_text="Access updated: 1 added, 0 removed.")).to_be_visible()
    assert not someone.call_tool(key).json()["result"].get("isError")

    page.get_by_role("row").filter(has_text="Patch report").get_by_role("link", name="Patch report").click()
    page.get_by_role("navigation", name="Patch report").get_by_role("link", name="Tools").click()
    page.get_by_role("link", name="Choose tools").click()
    page.get_by_role("link", name="none", exact=True).click()
    expect(page.get_by_label("Who am I")).not_to_be_checked()
    for label in ("Who am I", "List devices"):
        page.get_by_label(label).check()
    page.get_by_role("button", name="Save for Patch report").click()
    expect(page.get_by_role("status").filter(has_text="2 of 9 tools allowed")).to_be_visible()
    for tool, is_refused in (("acme_whoami", False), ("acme_list_devices", False), ("acme_search", True)):
        assert someone.call_tool(key, tool).json()["result"].get("isError", False) is is_refused


def test_a_key_is_rotated_with_an_overlap(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    old = someone.agent_key(org, "Patch report")
    page = someone.open(f"{org}/agents")
    page.get_by_role("link", name="Patch report").click()
    page.get_by_role("link", name="Manage keys").click()
    page.get_by_role("link", name="Rotate key").click()
    page.get_by_label("In 24 hours").check()
    page.get_by_role("button", name="Rotate key").click()
    dialog = page.get_by_role("dialog", name="Patch report: agent key")
    expect(dialog).to_contain_text("The old one works for another 24 hours.")
    new = page.get_by_label("Agent key", exact=True).input_value()
    for key in (old, new):
        assert someone.call_tool(key).status_code == 200
    page.get_by_role("link", name="I have saved it").click()
    expect(page.get_by_text("The previous key")).to_be_visible()
