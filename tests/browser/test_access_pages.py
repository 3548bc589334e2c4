"""Tool access, server access and explain access as people use them: with and without scripts, small and dark."""

from __future__ import annotations

from functools import partial

from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.conftest import Visitor, wait_until
from tests.browser.looking import PHONE, SCREENS, faults, faults_in, press
from tests.browser.test_pages import NewVisitor
from tests.browser.test_people_pages import make_team, said

WITHOUT_SCRIPTS = {"java_script_enabled": False}


def discover(someone: Visitor, org: str) -> Page:
    """Acme's tools, seen once, with their page open."""
    page = someone.open(f"{org}/vendors/acme/tools")
    page.get_by_role("button", name="Refresh tools").click()
    page.wait_for_load_state()
    expect(said(page, "Acme RMM offers 9 tools")).to_be_visible()
    return page


def test_a_tool_is_taken_from_a_role(visitor: NewVisitor) -> None:
    owner = visitor()
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    key = owner.agent_key(org)
    page = discover(owner, org)
    expect(page.get_by_role("heading", name="All tools allowed")).to_be_visible()

    page.get_by_role("button", name="destructive").click()
    expect(page.locator(".tool-row:visible")).to_have_count(1)
    box = page.get_by_label("Delete a ticket acme_delete_ticket")
    box.uncheck()
    expect(page.get_by_label("Selected tools only")).to_be_checked()
    expect(page.get_by_text("Not saved yet: 1 removed.")).to_be_visible()

    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.get_by_role("link", name="Preview", exact=True).click()
    wait_until(page, lambda: asked)
    page.wait_for_timeout(300)
    assert asked == ["beforeunload"]
    expect(box).not_to_be_checked()
    page.get_by_role("button", name="Save for members").click()
    expect(said(page, "Saved for members: 8 of 9 tools allowed (0 added, 1 removed).")).to_be_visible()
    expect(page.get_by_role("heading", name="8 of 9 allowed")).to_be_visible()

    refused = owner.call_tool(key, "acme_delete_ticket").json()["result"]
    assert refused["isError"]
    assert "The role member isn't allowed to call" in refused["content"][0]["text"]
    page.get_by_role("link", name="Preview", exact=True).click()
    expect(page.get_by_text("8 of 9 tools, about")).to_be_visible()
    expect(page.get_by_text("acme_delete_ticket")).to_have_count(0)
    page.get_by_role("link", name="Admin", exact=True).click()
    expect(page.get_by_text("9 of 9 tools, about")).to_be_visible()

    owner.open(f"{org}/explain")
    bot = page.locator("#people option").filter(has_text="Triage bot").get_attribute("value")
    page.get_by_label("Person or agent", exact=True).fill(bot or "")
    page.get_by_label("Name", exact=True).fill("acme_delete_ticket")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_role("heading", name="acme_delete_ticket denied")).to_be_visible()
    expect(said(page, "An owner of Nordwind can allow it.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("acme_whoami")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_role("heading", name="acme_whoami allowed")).to_be_visible()


def summary(page: Page) -> Locator:
    """The words about changes beside the button; a region for screen readers says the same."""
    return page.locator("[data-change-summary]")


def test_ticks_are_set_in_place(visitor: NewVisitor) -> None:
    owner = visitor()
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    page = discover(owner, org)
    address = page.url
    ticks = page.get_by_role("main").get_by_role("checkbox")
    page.get_by_role("link", name="none", exact=True).click()
    expect(summary(page).get_by_text("Not saved yet: 9 removed.")).to_be_visible()
    expect(page.get_by_label("Selected tools only")).to_be_checked()
    assert not [each for each in ticks.all() if each.is_checked()]
    page.get_by_label("Who am I").check()
    expect(summary(page).get_by_text("Not saved yet: 8 removed.")).to_be_visible()
    page.get_by_role("link", name="read-only", exact=True).click()
    expect(summary(page).get_by_text("Not saved yet: 3 removed.")).to_be_visible()
    expect(page.get_by_label("Delete a ticket acme_delete_ticket")).not_to_be_checked()
    assert page.url == address
    page.get_by_role("button", name="Save for members").click()
    expect(said(page, "Saved for members: 6 of 9 tools allowed (0 added, 3 removed).")).to_be_visible()
    page.get_by_role("link", name="all", exact=True).click()
    expect(summary(page).get_by_text("Not saved yet: 3 added.")).to_be_visible()

    without = visitor(**WITHOUT_SCRIPTS)
    org = without.found_organization("Stillwasser")
    without.has_acme(org)
    page = discover(without, org)
    page.get_by_role("link", name="none", exact=True).click()
    expect(said(page, "Selected: No tools. Not saved yet.")).to_be_visible()
    expect(page.get_by_label("Who am I")).not_to_be_checked()


def test_two_owners_of_one_list(visitor: NewVisitor) -> None:
    one = visitor()
    org = one.found_organization()
    one.has_acme(org)
    page = discover(one, org)
    other = page.context.new_page()
    other.goto(f"{one.base}{org}/vendors/acme/tools")
    other.get_by_label("Fail acme_fail").uncheck()
    other.get_by_role("button", name="Save for members").click()
    expect(said(other, "8 of 9 tools allowed")).to_be_visible()
    page.get_by_label("Who am I").uncheck()
    page.get_by_role("button", name="Save for members").click()
    expect(page.get_by_role("alert").filter(has_text="changed this list while you were editing")).to_be_focused()
    expect(page.get_by_label("Who am I")).not_to_be_checked()
    assert not faults(page)
    page.get_by_role("button", name="Overwrite with mine").click()
    expect(said(page, "8 of 9 tools allowed (1 added, 1 removed)")).to_be_visible()


def test_a_vendor_is_added_to_a_member(visitor: NewVisitor) -> None:
    owner, member = visitor(), visitor()
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    member.sign_in(name="Mia Member")
    member.post(owner.invitation(org))
    member.open(f"{org}/explain?tool=acme_whoami")
    expect(said(member.page, "Mia Member has no access to Acme RMM.")).to_be_visible()
    expect(member.page.get_by_label("Person or agent", exact=True)).to_have_count(0)
    assert not faults(member.page)

    page = owner.open(f"{org}/access")
    box = page.get_by_label("Give Mia Member access to Acme RMM")
    page.get_by_role("button", name="All vendors for Mia Member").click()
    expect(box).to_be_checked()
    expect(page.get_by_text("Not saved yet: 1 added.")).to_be_visible()
    page.get_by_role("button", name="Save vendor access").click()
    expect(said(page, "Access updated: 1 added, 0 removed.")).to_be_visible()
    expect(box).to_be_checked()
    member.page.reload()
    expect(member.page.get_by_role("heading", name="acme_whoami allowed")).to_be_visible()

    page.get_by_role("link", name="Give all members access to all vendors").click()
    expect(page.get_by_role("heading", level=1, name="Give members access to all vendors")).to_be_visible()


def test_access_is_asked_for_and_given_for_a_day(visitor: NewVisitor) -> None:
    owner, member = visitor(), visitor(java_script_enabled=False)
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    member.sign_in(name="Mia Member")
    member.post(owner.invitation(org))
    page = member.open(org)
    page.get_by_role("main").get_by_role("link", name="Set up a client").first.click()
    page.get_by_label("Reason").fill("For the night shift")
    page.get_by_role("button", name="Ask for access").click()
    expect(page.get_by_text("An admin will decide.")).to_be_visible()

    page = owner.open(org)
    page.get_by_role("region", name="Waiting for you").get_by_role("link").first.click()
    expect(page.get_by_text("For the night shift")).to_be_visible()
    page.get_by_label("Access lasts").select_option("1d")
    page.get_by_role("button", name="Give access").click()
    expect(page.get_by_role("row").filter(has_text="Mia Member")).to_contain_text("Access ends")
    member.open(f"{org}/explain?tool=acme_whoami")
    expect(member.page.get_by_role("heading", name="acme_whoami allowed")).to_be_visible()


def test_without_scripts(visitor: NewVisitor) -> None:
    owner = visitor(**WITHOUT_SCRIPTS)
    org = owner.found_organization()
    owner.has_acme(org)
    page = discover(owner, org)
    expect(page.get_by_role("button", name="destructive")).to_have_count(0)
    page.get_by_role("link", name="none").click()
    page.get_by_role("button", name="Save for members").click()
    expect(page.get_by_text("Members won’t be able to call any Acme RMM tool.")).to_be_visible()
    page.get_by_role("button", name="Block all tools").click()
    expect(said(page, "0 of 9 tools allowed")).to_be_visible()
    page.get_by_role("link", name="read-only").click()
    page.get_by_role("button", name="Save for members").click()
    expect(said(page, "Saved for members: 6 of 9 tools allowed (6 added, 0 removed).")).to_be_visible()
    make_team(owner, org)
    owner.open(f"{org}/access?view=teams")
    page.get_by_label("Give Night shift access to Acme RMM").check()
    page.get_by_role("button", name="Save vendor access").click()
    expect(said(page, "Access updated: 1 added")).to_be_visible()
    owner.open(f"{org}/explain?tool=acme_whoami")
    expect(page.get_by_role("heading", name="acme_whoami allowed")).to_be_visible()


def test_every_page_is_accessible(visitor: NewVisitor) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 844})
    look = partial(faults_in, views=SCREENS)
    org = someone.found_organization()
    page, found = someone.page, []
    empty = ["/vendors", "/vendors/acme/tools", "/access", "/access?view=teams", "/explain"]
    full = [
        *empty,
        "/access?q=nobody",
        "/access?vendor=nothing",
        "/vendors/acme/tools?start=read-only",
        "/vendors/acme/tools?view=preview",
        "/vendors/acme/tools?role=admin",
        "/explain?tool=acme_whoami",
        "/explain?tool=nothing_like_it",
    ]
    for path in empty:
        found += look(someone.open(f"{org}{path}"))
    someone.has_acme(org)
    discover(someone, org)
    make_team(someone, org)
    for path in full:
        found += look(someone.open(f"{org}{path}"))
    someone.open(f"{org}/vendors/acme/tools?start=none")
    press(page.get_by_role("button", name="Save for members"))
    page.get_by_role("button", name="Block all tools").wait_for()
    found += look(page)
    assert not found, "\n".join(found)


def test_resources_are_chosen_without_scripts(visitor: NewVisitor) -> None:
    owner = visitor(**WITHOUT_SCRIPTS)
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    page = owner.open(f"{org}/vendors/acme/tools?role=admin")
    page.get_by_role("link", name="Resources and prompts").click()
    section = page.get_by_role("region", name="Resources")
    expect(section.get_by_text("All are allowed because there is no list.")).to_be_visible()
    section.get_by_label("Only these").check()
    section.get_by_role("button", name="Save for admins").click()
    expect(section.get_by_text("The list is empty. With it, none of these can be used.")).to_be_visible()
    section.get_by_label("On the list").fill("file:///notes.md\nfile:///docs/{name}")
    section.get_by_role("button", name="Save for admins").click()
    expect(said(page, "Saved for admins: resources on the list: 2.")).to_be_visible()
    expect(section.get_by_text("2 entries are allowed, and no others.")).to_be_visible()
    expect(section.get_by_label("On the list")).to_have_value("file:///notes.md\nfile:///docs/{name}")
    prompts = page.get_by_role("region", name="Prompts")
    expect(prompts.get_by_text("All are allowed because there is no list.")).to_be_visible()
    page.get_by_role("link", name="Owner", exact=True).click()
    expect(section.get_by_text("All are allowed because there is no list.")).to_be_visible()
    page.goto(page.url.replace("role=owner", "role=admin"))
    section.get_by_label("No list").check()
    section.get_by_role("button", name="Save for admins").click()
    expect(said(page, "Saved for admins: no list of resources.")).to_be_visible()

    page = owner.open(f"{org}/explain?kind=resources&tool=acme%2Bfile:///notes.md")
    expect(page.get_by_role("heading", name="acme+file:///notes.md allowed")).to_be_visible()
