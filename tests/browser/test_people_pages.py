"""Members, invitations, teams and settings as people use them: by two persons, without scripts, small and dark."""

from __future__ import annotations

import re
from functools import partial

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visitor, new_email, stop_clock
from tests.browser.looking import BOTH_THEMES, LIGHT_NARROW, PHONE, SCREENS, faults_in
from tests.browser.test_pages import NewVisitor

GRANTED = "Add a vendor"
ADD = "Add member"


def said(page: Page, text: str) -> Locator:
    """The notice with this text."""
    return page.get_by_role("status").filter(has_text=text)


def make_invitation(someone: Visitor, org: str) -> str:
    """A new invitation's link; the dialog with it is still open."""
    page = someone.open(f"{org}/invitations")
    page.get_by_role("button", name="Create invitation").click()
    page.wait_for_load_state()
    return page.get_by_label("Link", exact=True).input_value().removeprefix(someone.base)


def join(other: Visitor, link: str, name: str) -> None:
    """A new person uses the link."""
    page = other.open(link)
    page.get_by_role("link", name="Sign in to join").click()
    other.sign_in_by_form(name=name)
    other.open(link).get_by_role("button", name="Join").click()
    page.wait_for_url("**/orgs/*")


def make_team(someone: Visitor, org: str, name: str = "Night shift") -> None:
    """A team, with its page open."""
    page = someone.open(f"{org}/teams")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def open_tab(page: Page, label: str, team: str = "Night shift") -> None:
    """A tab of the team, from another one."""
    page.get_by_role("navigation", name=team, exact=True).get_by_role("link", name=label, exact=True).click()
    page.wait_for_url(f"**/teams/*/{label.lower()}")


def test_from_an_invitation_to_a_team_and_out_again(visitor: NewVisitor) -> None:
    owner, other = visitor(permissions=["clipboard-read", "clipboard-write"]), visitor()
    stop_clock(owner.page)  # a button says for two seconds that it has copied
    org = owner.found_organization("Nordwind")
    page = owner.open(f"{org}/people")
    page.get_by_role("link", name="Invite").click()
    expect(page.get_by_text("No pending invitations")).to_be_visible()
    link = make_invitation(owner, org)
    dialog = page.get_by_role("dialog", name="Invitation for anyone with the link")
    expect(page.locator("dialog:modal")).to_have_count(1)
    expect(dialog.get_by_role("button", name="Copy the link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Copied the link")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("in 7 days")
    assert page.evaluate("navigator.clipboard.readText()") == f"{owner.base}{link}"
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    owner.open(f"{org}/invitations")
    assert link not in page.content()
    page.get_by_role("button", name="Show link").click()
    expect(page.get_by_label("Link", exact=True)).to_have_value(f"{owner.base}{link}")
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("dialog")).to_have_count(0)

    join(other, link, "Bo Lindqvist")
    expect(other.page.get_by_role("link", name="People", exact=True)).to_be_visible()
    expect(other.page.get_by_role("link", name="Invitations")).to_have_count(0)
    owner.open(f"{org}/invitations")
    expect(page.get_by_text("No pending invitations")).to_be_visible()

    make_team(owner, org)
    page.get_by_label(ADD).fill("Bo Lindqvist")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(said(page, "Bo Lindqvist was added to the team.")).to_be_visible()
    page.get_by_role("button", name="Remove Bo Lindqvist").click()
    expect(said(page, "Bo Lindqvist was removed from the team.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("row").filter(has_text="Bo Lindqvist")).to_be_visible()
    open_tab(page, "Access")
    page.get_by_label(GRANTED).fill("Acme RMM")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(said(page, "Everyone in the team can use Acme RMM.")).to_be_visible()

    owner.open(f"{org}/people")
    row = page.get_by_role("row").filter(has_text="Bo Lindqvist")
    expect(row).to_contain_text("Night shift")
    page.get_by_role("link", name="Change role of Bo Lindqvist").click()
    page.get_by_label("Admin", exact=True).check()
    page.get_by_role("button", name="Save role").click()
    expect(said(page, "Bo Lindqvist is now an admin.")).to_be_visible()
    other.open(f"{org}/people")
    expect(other.page.get_by_role("link", name="Invitations")).to_be_visible()
    page.get_by_role("link", name="Remove Bo Lindqvist").click()
    expect(page.get_by_text("membership in 1 team: Night shift")).to_be_visible()
    page.get_by_role("button", name="Remove Bo Lindqvist").click()
    expect(said(page, "Bo Lindqvist was removed.")).to_be_visible()
    other.open(f"{org}/people")
    expect(other.page.get_by_role("heading", name="Page not found")).to_be_visible()


def test_a_member_leaves(visitor: NewVisitor) -> None:
    owner, other = visitor(), visitor()
    org = owner.found_organization("Nordwind")
    other.sign_in(name="Bo Lindqvist")
    other.post(owner.invitation(org))
    page = other.open(f"{org}/people")
    page.get_by_role("link", name="Leave Nordwind").click()
    expect(page.get_by_role("heading", name="Leave Nordwind?")).to_be_visible()
    page.get_by_role("button", name="Leave Nordwind").click()
    expect(said(page, "You left Nordwind.")).to_be_visible()
    other.open(f"{org}/people")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()

    page = owner.open("/profile")
    page.get_by_role("link", name="Leave Nordwind").click()
    expect(page.get_by_role("alert")).to_contain_text("You’re the only owner")
    expect(page.get_by_role("button", name="Leave Nordwind")).to_have_count(0)
    page.get_by_role("link", name="delete Nordwind").click()
    expect(page.get_by_role("button", name="Delete organization")).to_be_visible()


def test_an_organization_changes_hands(visitor: NewVisitor) -> None:
    owner, other = visitor(), visitor()
    org = owner.found_organization("Nordwind")
    other.sign_in(name="Bo Lindqvist")
    other.post(owner.invitation(org))
    page = owner.open(f"{org}/people")
    page.get_by_role("link", name="Change role of Bo Lindqvist").click()
    page.get_by_role("link", name=re.compile("^Make Bo Lindqvist")).click()
    expect(page.get_by_label("Stay an owner too")).to_be_checked()
    page.get_by_label(re.compile("^Type Bo Lindqvist")).fill(
        str(page.locator("[data-confirm-text]").get_attribute("data-confirm-text"))
    )
    page.get_by_role("button", name=re.compile("^Make Bo Lindqvist")).click()
    expect(said(page, "You are still an owner.")).to_be_visible()
    other.open(f"{org}/people").get_by_role("row").filter(has_text="you").get_by_role("link").first.click()
    other.page.get_by_role("link", name="Settings", exact=True).last.click()
    expect(other.page.get_by_role("heading", name="Your role: owner")).to_be_visible()
    other.page.get_by_role("button", name="Step down").click()
    expect(said(other.page, "You are now an admin.")).to_be_visible()


def test_other_browsers_are_signed_out(visitor: NewVisitor) -> None:
    here, there = visitor(), visitor()
    email = new_email()
    here.sign_in(email)
    there.sign_in(email)
    org = f"/orgs/{here.post('/api/orgs', name='Nordwind')['id']}"
    there.open("/profile")
    page = here.open("/profile")
    expect(page.get_by_text("this browser", exact=True)).to_be_visible()
    page.get_by_role("button", name="Sign out others").click()
    expect(said(page, "Signed out of 1 other browser.")).to_be_visible()
    expect(page.get_by_role("button", name="Sign out others")).to_have_count(0)
    here.open(f"{org}/people")
    expect(page.get_by_role("heading", name="Members")).to_be_visible()
    there.open(f"{org}/people")
    expect(there.page).to_have_url(re.compile("/signin"))


def test_the_name_is_typed_before_something_ends(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization("Kurzlebig")
    make_team(someone, org)
    page = someone.page
    open_tab(page, "Settings")
    page.get_by_role("link", name="Delete Night shift").click()
    button = page.get_by_role("button", name="Delete team")
    expect(button).to_be_disabled()
    page.get_by_label("Type Night shift to confirm").fill("Night shift")
    button.click()
    expect(said(page, "The team Night shift was deleted.")).to_be_visible()
    expect(page.get_by_text("No teams yet")).to_be_visible()

    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Delete organization").click()
    button = page.get_by_role("button", name="Delete organization")
    expect(button).to_be_disabled()
    page.get_by_label("Type Kurzlebig to confirm").fill("kurzlebig")
    expect(button).to_be_disabled()
    page.get_by_label("Type Kurzlebig to confirm").fill("Kurzlebig")
    button.click()
    page.wait_for_url("**/welcome")
    expect(said(page, "Kurzlebig was deleted.")).to_be_visible()


def test_without_scripts(visitor: NewVisitor) -> None:
    owner, other = visitor(java_script_enabled=False), visitor(java_script_enabled=False)
    org = owner.found_organization("Scriptless")
    page = owner.page
    owner.has_acme(org)
    link = make_invitation(owner, org)
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    page.get_by_role("link", name="Done").click()
    join(other, link, "Bo Lindqvist")
    make_invitation(owner, org)
    page.get_by_role("link", name="Done").click()
    page.get_by_role("link", name="Revoke").click()
    page.get_by_role("button", name="Revoke invitation").click()
    expect(said(page, "The invitation was revoked.")).to_be_visible()

    make_team(owner, org)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Choose a member.")).to_be_visible()
    page.get_by_label(ADD).fill("Bo Lindqvist")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Undo").click()
    expect(said(page, "was added to the team.")).to_be_visible()

    owner.open(f"{org}/settings").get_by_label("All connected vendors").check()
    page.get_by_role("button", name="Preview the change").click()
    expect(page.get_by_role("heading", name="1 member gains 1 vendor")).to_be_visible()
    page.get_by_role("button", name="Give access").click()
    expect(page.get_by_label("All connected vendors")).to_be_checked()
    page.get_by_label("None", exact=True).check()
    page.get_by_role("button", name="Preview the change").click()
    expect(page.get_by_role("row").filter(has_text="Bo Lindqvist")).to_contain_text("Acme RMM")
    page.get_by_role("button", name="Give access vendor by vendor").click()
    expect(page.get_by_label("None", exact=True)).to_be_checked()
    page.get_by_role("link", name="Delete organization").click()
    page.get_by_role("button", name="Delete organization").click()
    expect(page.get_by_text("Type Scriptless to confirm.", exact=True)).to_be_visible()
    page.get_by_label("Type Scriptless to confirm").fill("Scriptless")
    page.get_by_role("button", name="Delete organization").click()
    expect(said(page, "Scriptless was deleted.")).to_be_visible()


def peopled(owner: Visitor, other: Visitor) -> tuple[str, list[str]]:
    """An organization with two members, a connected vendor, an invitation and a team; its pages."""
    org = owner.found_organization("Volle Halle")
    owner.has_acme(org)
    other.sign_in(name="Bo Lindqvist")
    other.post(owner.invitation(org))
    owner.invitation(org)
    make_team(owner, org, "Rufbereitschaftskoordinationsstelle" * 2)
    page = owner.page
    team = page.url.removeprefix(owner.base)
    page.get_by_label(ADD).fill("Bo Lindqvist")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(said(page, "was added to the team.")).to_be_visible()
    owner.open(f"{team}/access").get_by_label(GRANTED).fill("Acme RMM")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(said(page, "Everyone in the team can use Acme RMM.")).to_be_visible()
    paths = [f"{org}/people", f"{org}/invitations", f"{org}/teams", team, f"{team}/access", f"{org}/settings"]
    paths += [
        f"{team}/settings",
        f"{team}/delete",
        f"{team}/credentials/acme",
        f"{org}/settings/default-access?to=all",
        f"{org}/settings/delete",
        f"{org}/people?q=nobody",
        f"{org}/leave",
    ]
    owner.open(f"{org}/people")
    for name in ("Change role of", "Remove"):
        found = page.get_by_role("link", name=f"{name} Bo Lindqvist").get_attribute("href")
        assert found is not None
        paths.append(found)
    found = owner.open(f"{org}/invitations").get_by_role("link", name="Revoke").get_attribute("href")
    assert found is not None
    return org, [*paths, found]


def test_every_page_is_accessible(visitor: NewVisitor) -> None:
    someone = visitor()
    empty = someone.found_organization("Leere Halle")
    page, found = someone.page, []
    faults = partial(faults_in, views=BOTH_THEMES)
    for rest in ("/people", "/invitations", "/teams", "/settings"):
        found += faults(someone.open(f"{empty}{rest}"))
    page = someone.open(f"{empty}/invitations")
    page.get_by_label("Email address").fill("nobody")
    page.get_by_role("button", name="Create invitation").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += faults(page)
    make_invitation(someone, empty)
    expect(page.get_by_role("dialog")).to_be_visible()
    found += faults(page)
    assert not found, "\n".join(found)


def test_every_page_with_people_is_accessible_and_fits(visitor: NewVisitor) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 760})
    other = visitor()
    org, paths = peopled(someone, other)
    page, found = someone.page, []
    for path in paths:
        found += faults_in(someone.open(path), (*SCREENS, LIGHT_NARROW))
    faults = partial(faults_in, views=BOTH_THEMES)
    someone.open(paths[4]).get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Choose a vendor from the catalog.")).to_be_visible()
    found += faults(page)
    someone.open(paths[3]).get_by_role("button", name="Remove Bo Lindqvist").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    found += faults(page)
    found += faults(other.open(f"{org}/people"))
    found += faults(other.open(f"{org}/leave"))
    found += faults(other.open(f"{org}/settings"))
    assert not found, "\n".join(found)
