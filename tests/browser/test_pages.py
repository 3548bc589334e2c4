"""The pages as people use them: by mouse, by keyboard, without scripts, in both themes and on a small screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Response, Route, expect

from tests.browser.conftest import Visitor, stop_clock, wait_until
from tests.browser.looking import BOTH_THEMES, LIGHT_NARROW, LIGHT_PHONE, NARROW, PHONE, THEME, excess_width, faults_in

NewVisitor = Callable[..., Visitor]
ONCE = "This is the only time the complete secret is shown."
PUBLIC_DOCS = ("/docs/api", "/docs/migrate")
# Pages of an organization.
PATHS = (
    "",
    "/setup",
    "/vendors",
    "/catalog",
    "/vendors/acme",
    "/vendors/acme/access",
    "/vendors/acme/activity",
    "/vendors/acme/settings",
    "/agents",
    "/agents/new",
    "/access?view=agents",
    "/activity",
    "/activity/changes",
)


def store_own_credentials(page: Page, key: str = "demo-browser-tests-0002") -> None:
    """From the access of an agent: the demo vendor's form, sent with `key`."""
    page.get_by_label("Add credentials for").fill("Acme RMM")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Store").click()
    page.wait_for_url("**/agents/*/access")


def open_every_section(page: Page) -> Page:
    """The same page with everything unfolded."""
    page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
    return page


def test_from_the_start_page_to_the_first_call(visitor: NewVisitor) -> None:
    someone = visitor()
    page = someone.open("/")
    page.get_by_role("main").get_by_role("link", name="Sign in").click()
    org = someone.found_organization_by_form("Nordwind")
    expect(page.get_by_role("status").filter(has_text="Nordwind is ready")).to_be_visible()
    expect(page.get_by_role("heading", name="First steps 0 of 3 done")).to_be_visible()

    someone.connect_acme(org, "a-wrong-key")
    expect(page.get_by_role("alert")).to_contain_text("Acme RMM rejected these credentials (401). Nothing was saved.")
    expect(page.get_by_label("API key")).to_have_value("")
    someone.open(f"{org}/catalog")
    expect(page.get_by_role("heading", name="Add a vendor")).to_be_visible()

    someone.connect_acme(org)
    expect(page.get_by_role("status").filter(has_text="is connected.")).to_be_visible()
    expect(page.get_by_role("heading", name="Acme RMM")).to_be_visible()

    key = someone.create_agent_by_form(org, "Triage bot")
    assert someone.call_tool(key).status_code == 200

    someone.open(f"{org}/activity")
    row = page.get_by_role("row").filter(has_text="acme_whoami")
    expect(row).to_contain_text("Triage bot")
    expect(row).to_contain_text("success")
    row.locator("summary").click()
    expect(row.get_by_text("Request ID")).to_be_visible()
    page.keyboard.press("Escape")
    expect(row.get_by_text("Request ID")).to_be_hidden()
    someone.open(org)
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
    expect(page.get_by_role("img", name="1 calls and 0 errors in 7 days.")).to_be_visible()


def test_a_secret_is_shown_once(visitor: NewVisitor, tmp_path: Path) -> None:
    someone = visitor(permissions=["clipboard-read", "clipboard-write"])
    stop_clock(someone.page)  # a button says for two seconds that it has copied
    org = someone.found_organization()
    page = someone.page
    someone.agent_key(org, "Night shift")
    page = someone.open(f"{org}/agents")
    page.get_by_role("link", name="Night shift").click()
    page.get_by_role("link", name="Settings", exact=True).last.click()
    page.get_by_role("link", name="New client secret").click()
    page.get_by_role("button", name="Create new secret").click()
    dialog = page.get_by_role("dialog", name="Night shift: client secret")
    expect(dialog).to_contain_text(ONCE)
    secret = dialog.get_by_label("Client secret", exact=True).input_value()
    client_id = dialog.get_by_label("Client ID", exact=True).input_value()
    assert f"-d client_secret={secret}" in dialog.locator("[data-fill]").inner_text()

    for _ in range(3):
        page.keyboard.press("Escape")
    page.mouse.click(5, 5)
    expect(page.locator("dialog:modal")).to_be_visible()
    expect(dialog).to_be_visible()

    dialog.get_by_role("button", name="Copy Client secret").click()
    expect(dialog.get_by_role("button", name="Copied Client secret")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download .env").click()
    download.value.save_as(tmp_path / "saved.env")
    lines = [f"GATEWAY_CLIENT_ID={client_id}", f"GATEWAY_CLIENT_SECRET={secret}"]
    assert (tmp_path / "saved.env").read_text().splitlines() == lines
    assert secret not in page.url
    assert secret not in str(page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"))

    page.reload()  # sends the same form again
    expect(page.get_by_role("status").filter(has_text="Already created.")).to_be_visible()
    expect(page.get_by_role("heading", name="Client ID and secret")).to_be_visible()
    assert secret not in page.content()
    page.go_back()
    assert secret not in page.content()


def test_a_service_client_with_credentials_of_its_own(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    page = someone.page
    key = someone.create_agent_by_form(org, "Patch report")
    page.get_by_role("link", name="I have saved the key").click()
    assert "isError" in someone.call_tool(key).text

    page.get_by_role("navigation", name="Patch report").get_by_role("link", name="Access").click()
    store_own_credentials(page)
    expect(page.get_by_role("status").filter(has_text="for Patch report are saved and verified.")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Acme RMM").first).to_be_visible()
    answer = someone.call_tool(key)
    assert answer.status_code == 200
    assert not answer.json()["result"].get("isError")
    page.get_by_role("link", name="Replace or delete").click()
    page.get_by_role("link", name="Delete credentials").click()
    page.get_by_label("Type Patch report to confirm").fill("Patch report")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").filter(has_text="credentials of Patch report were deleted.")).to_be_visible()
    assert someone.call_tool(key).json()["result"]["isError"]


def test_a_key_in_use_is_rotated_by_name(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    someone.has_acme(org)
    old = someone.agent_key(org, "Patch report")
    assert someone.call_tool(old).status_code == 200
    page = someone.open(f"{org}/agents")
    page.get_by_role("link", name="Patch report").click()
    page.get_by_role("link", name="Manage keys").click()
    page.get_by_role("link", name="Rotate key").click()
    expect(page.get_by_label("Immediately")).to_be_checked()
    rotate = page.get_by_role("button", name="Rotate key")
    name = page.get_by_label("it was used within the last day")

    def is_use_noted() -> bool:  # a few seconds after the call
        page.reload()
        return name.is_visible()

    wait_until(page, is_use_noted)
    expect(name).to_be_visible()
    expect(rotate).to_be_disabled()
    name.fill("patch report")
    expect(rotate).to_be_disabled()
    name.fill("Patch report")
    rotate.click()
    expect(page.get_by_role("dialog")).to_contain_text("The old one no longer works.")
    new = page.get_by_label("Agent key", exact=True).input_value()
    assert new != old
    assert someone.call_tool(old).status_code == 401
    assert someone.call_tool(new).status_code == 200


def test_every_page_is_accessible(visitor: NewVisitor) -> None:
    someone = visitor()
    page, found = someone.page, []
    faults = partial(faults_in, views=BOTH_THEMES)
    for path in ("/", "/signin?next=/profile&failed=unreachable", "/nothing-here", "/docs/migrate"):
        found += faults(someone.open(path))
    empty = someone.found_organization_by_form("Nordwind")
    found += faults(page)
    for path in ("/agents", "/agents/new", "/catalog", "/setup"):  # test_log_pages.py looks at the logs
        found += faults(someone.open(f"{empty}{path}"))
    someone.connect_acme(empty, "a-wrong-key")
    found += faults(page)
    someone.open("/welcome").get_by_role("button", name="Create organization").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += faults(page)
    page.get_by_role("navigation").or_(page.locator(".switcher > summary")).first.click()
    found += faults(page)

    someone.connect_acme(empty)
    found += faults(page)
    key = someone.create_agent_by_form(empty, "Night shift")
    found += faults(page)
    for tool in ("acme_whoami", "acme_fail", "acme_unknown"):
        someone.call_tool(key, tool)
    expect(page.get_by_text("First call received").first).to_be_visible()
    found += faults(page)
    page.get_by_role("link", name="I have saved the key").click()
    found += faults(page)
    agent = page.url.removeprefix(someone.base)
    someone.open(f"{agent}/access")
    store_own_credentials(page)
    found += faults(page)
    page.get_by_role("button", name="Allow only chosen vendors").click()
    found += faults(page)
    page.get_by_role("link", name="Replace or delete").click()
    found += faults(page)
    for rest in ("/tools", "/tools/acme", "/activity", "/settings", "/agent-key", "/agent-key?revoke=1", "/delete"):
        found += faults(someone.open(f"{agent}{rest}"))
    someone.open(f"{agent}/client-secret")
    found += faults(page)
    page.get_by_label("Type Night shift to confirm").fill("Night shift")
    page.get_by_role("button", name="Create new secret").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found += faults(page)
    for path in PATHS:
        if not path.startswith("/activity"):
            found += faults(someone.open(f"{empty}{path}"))
    found += faults(someone.open("/profile"))
    found += faults(open_every_section(someone.open("/docs/api")))
    assert not found, "\n".join(found)


def tab_to(page: Page, name: str) -> None:
    """The focus is on the link, button or field of that name, reached by the Tab key alone, and one can see it."""
    named = """(name) => {
      const it = document.activeElement;
      const label = it.labels?.length ? it.labels[0].innerText : it.textContent;
      return label.trim().startsWith(name) ? getComputedStyle(it).outlineStyle : "";
    }"""
    for _ in range(60):
        page.keyboard.press("Tab")
        if outline := page.evaluate(named, name):
            assert outline != "none", name
            return
    raise AssertionError(f"no way to {name!r} by keyboard")


def test_by_keyboard_alone(visitor: NewVisitor) -> None:
    someone = visitor()
    page = someone.sign_in_by_form()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    tab_to(page, "Organization name")
    page.keyboard.type("Keyboard")
    page.keyboard.press("Enter")
    page.wait_for_url("**/orgs/*")
    tab_to(page, "An agent with its own key")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/new")
    tab_to(page, "Name")
    page.keyboard.type("Typed bot")
    tab_to(page, "Create agent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Typed bot is ready")).to_be_visible()
    tab_to(page, "I have saved the key")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Agent, created")).to_be_visible()
    tab_to(page, "Manage keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Client ID and secret")).to_be_visible()
    tab_to(page, "New client secret")
    page.keyboard.press("Enter")
    page.wait_for_url("**/client-secret")
    tab_to(page, "Create new secret")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Typed bot: client secret")
    expect(page.locator("dialog:modal:focus, dialog:modal :focus")).to_be_visible()
    expect(dialog).to_be_visible()
    tab_to(page, "I have saved it")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="Typed bot")).to_be_visible()

    tab_to(page, "Home")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.rpartition("/")[0].endswith("/orgs"))
    tab_to(page, "Set up a client")
    page.keyboard.press("Enter")
    page.wait_for_url("**/setup")
    tab_to(page, "curl (plain JSON)")
    page.keyboard.press("Enter")
    expect(page.get_by_text("grant_type=client_credentials")).to_be_visible()
    someone.open(urlsplit(page.url).path)
    expect(page.get_by_role("heading", name="curl (plain JSON)")).to_be_visible()

    page.keyboard.press("Tab")
    tab_to(page, "Keyboard")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="New organization")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="New organization")).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('.switcher > summary')")


def test_without_scripts(visitor: NewVisitor) -> None:
    someone = visitor(java_script_enabled=False)
    page = someone.page
    org = someone.found_organization_by_form("Scriptless")
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    someone.connect_acme(org, "a-wrong-key")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved.")
    someone.connect_acme(org)
    expect(page.get_by_text("is connected.")).to_be_visible()
    key = someone.create_agent_by_form(org, "Plain bot")
    expect(page.get_by_text("Waiting for its first call")).to_be_visible()
    expect(page.get_by_text(f"Bearer {key}").first).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    page.get_by_role("link", name="Check now").click()
    agent = page.url.rpartition("/")[0].removeprefix(someone.base)
    expect(page.get_by_text("Waiting for its first call")).to_be_visible()
    page.get_by_role("link", name="Settings", exact=True).last.click()
    page.get_by_role("link", name="New client secret").click()
    page.get_by_label("In 24 hours").check()
    page.get_by_role("button", name="Create new secret").click()
    expect(page.get_by_text(ONCE)).to_be_visible()
    assert page.get_by_label("Client secret", exact=True).input_value()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    expect(page.get_by_role("button", name="Download .env")).to_have_count(0)
    page.get_by_role("link", name="I have saved it").click()
    expect(page.get_by_text(ONCE)).to_have_count(0)
    assert someone.call_tool(key).status_code == 200
    someone.open(f"{agent}/first-call")
    expect(page.get_by_text("First call received")).to_be_visible()
    someone.open(f"{agent}/delete")
    name = page.get_by_label("Type Plain bot to confirm")

    def is_use_noted() -> bool:  # a few seconds after the call
        page.reload()
        return name.is_visible()

    wait_until(page, is_use_noted)
    name.fill("Plain bot")
    page.get_by_role("button", name="Delete agent").click()
    expect(page.get_by_text("Plain bot was deleted.")).to_be_visible()
    someone.open(f"{org}/setup")
    page.get_by_role("link", name="Codex").click()
    expect(page.get_by_text("codex mcp add gateway")).to_be_visible()
    expect(page.get_by_text("claude mcp add --transport http")).to_have_count(0)
    page.locator(".menu-right > summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(lambda url: urlsplit(url).path == "/")  # by way of the identity provider, which ends its session
    someone.open("/profile")
    expect(page.get_by_role("heading", name="Sign in to Gateway")).to_be_visible()


def test_a_form_is_sent_once_and_says_what_it_waits_for(visitor: NewVisitor) -> None:
    someone = visitor()
    org = someone.found_organization()
    page, sent = someone.page, []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            sent.append(route)
        else:
            route.continue_()

    page.route("**/vendors/acme/settings", hold)
    someone.open(f"{org}/vendors/acme/settings")
    page.get_by_label("API key").fill("demo-browser-tests-0001")
    pressed_twice = """() => {
      const button = document.querySelector("main form[data-busy] [type=submit]");
      button.click();
      const state = [button.getAttribute("aria-busy"), button.textContent];
      button.click();
      return state;
    }"""
    assert page.evaluate(pressed_twice) == ["true", "Checking with Acme RMM…"]
    wait_until(page, lambda: sent)
    page.wait_for_timeout(300)
    assert len(sent) == 1
    sent[0].continue_()
    expect(page.get_by_role("link", name="Acme RMM")).to_be_visible()


def test_the_catalog_is_searched_while_typing(visitor: NewVisitor) -> None:
    someone = visitor()
    page = someone.open(f"{someone.found_organization()}/catalog")
    search = page.get_by_label("Search the catalog")
    search.fill("acme")
    expect(page.locator("#catalog-list li:visible")).to_have_count(1)
    search.fill("nothing like it")
    expect(page.get_by_text("No matches.")).to_be_visible()
    search.fill("")
    expect(page.get_by_text("No matches.")).to_be_hidden()


def test_the_theme_is_chosen_and_kept(visitor: NewVisitor) -> None:
    someone = visitor(color_scheme="light")
    page = someone.open("/")
    button = page.get_by_role("button", name="Switch between light, dark and the theme of the system")
    button.click()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert page.evaluate(THEME) == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground == "rgb(13, 18, 20)"
    button.click()
    assert page.evaluate(THEME) == "light"
    button.click()
    page.reload()
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_one_is_chosen(visitor: NewVisitor, scheme: str) -> None:
    assert visitor(color_scheme=scheme).open("/").evaluate(THEME) == scheme


def test_the_health_table_renews_itself_while_people_look(visitor: NewVisitor) -> None:
    someone = visitor()
    someone.page.clock.install()
    org = someone.sign_in_owner()
    page = someone.open(f"{org}/vendors")
    expect(page.get_by_role("row").filter(has_text="Acme")).to_be_visible()
    for _ in range(2):
        assert _status_of_next_renewal(page) == 200
        expect(page.locator("#vendor-health")).to_have_count(1)
    expect(page.get_by_role("row").filter(has_text="Acme")).to_be_visible()
    page.context.clear_cookies()
    for _ in range(60):
        page.clock.run_for(31_000)
        page.wait_for_timeout(250)
        if "/signin?next=" in page.url:
            break
    page.wait_for_url("**/signin?next=**")


def _status_of_next_renewal(page: Page) -> int:
    """Moves the page's clock on until the table asks for its next state, and returns the answer's status.

    The table's timer starts when the page's script has met the table, which no event of the page tells.
    """
    answers: list[Response] = []

    def collect(answer: Response) -> None:
        if "/vendors?seen=" in answer.url:
            answers.append(answer)

    page.on("response", collect)
    for _ in range(60):
        page.clock.run_for(31_000)
        page.wait_for_timeout(250)
        if answers:
            break
    page.remove_listener("response", collect)
    assert answers, "the table never asked"
    return answers[0].status


def test_badges_keep_their_words_whole(visitor: NewVisitor) -> None:
    """Beside a long name, in the demo organization, whose credentials are verified."""
    someone = visitor()
    org = someone.sign_in_owner()
    page = someone.open(f"{org}/vendors")
    row = page.get_by_role("row").filter(has_text="Acme RMM")
    expect(row).to_contain_text("Verified")
    row.get_by_role("link").evaluate("(link) => { link.textContent = 'A vendor with a long name '.repeat(4); }")
    row.locator("td").last.evaluate("(cell) => { cell.textContent = 'It did not answer in time. '.repeat(5); }")
    heights = page.locator("tbody .badge").evaluate_all("(all) => all.map((each) => each.clientHeight)")
    assert heights
    assert max(heights) < 30, "one line"


def test_nothing_is_cut_off_on_a_small_screen(visitor: NewVisitor) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 760})
    for tool in ("acme_whoami", "acme_fail"):
        someone.call_tool(someone.ready["agent_key"], tool)
    paths = ["/", "/signin", "/nothing-here"]
    wide = [fault for path in paths for fault in too_wide(someone.open(path))]
    org = someone.sign_in_owner()
    paths = ["/", "/nothing-here", "/welcome", "/profile", f"{org}/leave"]
    for path in (*paths, *(f"{org}{rest}" for rest in PATHS)):
        wide += too_wide(someone.open(path))
    assert not wide, "\n".join(wide)


def too_wide(page: Page) -> list[str]:
    """The page, once for each of the two small screens that it does not fit on."""
    found = []
    for width in (PHONE, NARROW):
        page.set_viewport_size({"width": width, "height": 760})
        if wide := excess_width(page, width):
            found.append(f"{page.url} is {wide} pixels wide at {width}")
    return found


def test_what_the_documentation_and_an_account_show_fits_on_a_small_screen(visitor: NewVisitor) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 760})
    faults = partial(faults_in, views=(LIGHT_PHONE, LIGHT_NARROW))
    org, found = someone.sign_in_owner(), []
    for path in PUBLIC_DOCS:
        found += faults(open_every_section(someone.open(path)))
    agent = someone.open(f"{org}/agents").locator("tbody th a").first.get_attribute("href")
    rests = ("", "/access", "/tools", "/activity", "/settings", "/agent-key", "/client-secret", "/credentials/acme")
    for path in (f"{agent}{rest}" for rest in rests):
        found += faults(someone.open(path))
    assert not found, "\n".join(found)
