"""The consent page: its content, who may decide, and the redirect."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from credentials.models import Credential
from credentials.vendor_check import ProbeAnswer
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from oauth_ext.models import AuthorizationRequest, Client, Grant
from orgs.models import Organization, ServerAccess
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors import credential_probe
from tests.api.oauth_ext.flow import ISSUER, LOOPBACK, PRIVATE, WEB, Flow, answer_of, make_flow
from tests.factories.cast import Cast, make_person
from tests.factories.health import put_health
from tests.factories.tenant import connect, load_vendor


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def shown(flow: Flow, page: str) -> str:
    """The text of the page as a person reads it."""
    response = flow.browser.get(page)
    assert response.status_code == 200
    return text_of(response)


def text_of(response: HttpResponse) -> str:
    """A page as a person reads it: tags out, spaces single."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def refused(response: HttpResponse, status: int = 410) -> None:
    """An error page that leads nowhere; no code came of it."""
    assert response.status_code == status
    assert "Location" not in response
    assert not Grant.objects.exists()


def test_the_page_names_who_asks_and_where_the_answer_goes(flow: Flow) -> None:
    page = flow.ask()
    text = shown(flow, page)
    assert "“Some agent”" in text
    assert "unverified" in text
    assert "You’ll be redirected to app.example on the internet." in text
    assert "We haven’t verified app.example." in text
    assert "The app registered itself 1 minute ago." in text
    assert "this computer" not in text
    assert "<strong>app.example</strong>" in flow.browser.get(page).content.decode()


@pytest.mark.parametrize(
    ("redirect_uri", "host"), [(LOOPBACK, "127.0.0.1"), (PRIVATE, "cursor://anysphere.cursor-mcp")]
)
def test_an_app_on_the_computer_is_named_without_a_warning(cast: Cast, redirect_uri: str, host: str) -> None:
    flow = make_flow(cast, redirect_uri=redirect_uri)
    text = shown(flow, flow.ask())
    assert f"an app on this computer ( {host} )" in text
    assert "Continue only if you just started this from an app on your computer." in text
    assert "verified" not in text
    assert "registered itself" not in text


def test_a_name_of_another_host_causes_a_warning(cast: Cast) -> None:
    flow = make_flow(cast, name="Claude")
    Client.objects.filter(pk=flow.client.pk).update(created=clock.now() - timedelta(hours=1))
    text = shown(flow, flow.ask())
    assert "This may not be the app it claims to be. app.example doesn’t belong to “Claude”." in text
    assert "registered itself" not in text


def test_head_answers_as_get_and_decides_nothing(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    assert (flow.browser.head(page).status_code, flow.browser.head(page).content) == (200, b"")
    assert cast.client("other_owner").head(page).status_code == cast.client("other_owner").get(page).status_code == 410
    assert flow.redeem(answer_of(flow.answer(page))["code"]).status_code == 200


def test_names_are_text(cast: Cast) -> None:
    flow = make_flow(cast, name="<script>alert(1)</script>")
    content = flow.browser.get(flow.ask()).content.decode()
    assert "<script>alert" not in content
    assert "&lt;script&gt;alert" in content


def test_a_client_that_we_made_ourselves(flow: Flow) -> None:
    Client.objects.filter(pk=flow.client.pk).update(registration_source="manual", name="")
    text = shown(flow, flow.ask())
    assert "unverified" not in text
    assert "An app without a name" in text


def test_a_client_with_a_metadata_document_shows_its_host(flow: Flow) -> None:
    page = flow.ask()
    Client.objects.filter(pk=flow.client.pk).update(
        registration_source="cimd", client_id="https://vouching.example/client.json"
    )
    assert "Published by vouching.example" in shown(flow, page)


def test_nobody_frames_the_page_and_its_form_may_lead_to_the_app(cast: Cast) -> None:
    for redirect_uri, source in ((WEB, "https:"), (LOOPBACK, "http://127.0.0.1:5000"), (PRIVATE, "cursor:")):
        flow = make_flow(cast, redirect_uri=redirect_uri)
        response = flow.browser.get(flow.ask())
        policy = dict(part.strip().partition(" ")[::2] for part in response["Content-Security-Policy"].split(";"))
        assert policy["frame-ancestors"] == "'none'"
        assert set(policy["form-action"].split()) == {"'self'", "https:", source}
        assert policy["default-src"] == "'none'"
        assert response["X-Frame-Options"] == "DENY"
        assert response["Cache-Control"] == "no-store"


def test_allowing_brings_a_code_to_the_client(cast: Cast, flow: Flow) -> None:
    response = flow.answer(flow.ask())
    received = answer_of(response)
    assert response["Location"].startswith(f"{WEB}?code=")
    assert set(received) == {"code", "state", "iss"}
    assert (received["state"], received["iss"]) == ("st4te", ISSUER)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", received["code"])
    row = Grant.objects.get()
    assert received["code"] not in row.code
    assert (row.user, row.organization, row.application) == (cast.user("member"), cast.org, flow.client)
    assert timedelta(seconds=55) < row.expires - clock.now() <= timedelta(seconds=60)
    entry = AdminAuditEntry.objects.get(event_type="oauth.consent_granted")
    assert (entry.org_id, entry.actor_id, entry.target_label) == (
        cast.org.id,
        str(cast.user("member").id),
        "Some agent",
    )
    assert entry.metadata == {"client_id": flow.client.client_id, "redirect_host": "app.example", "scope": "mcp:all"}


@pytest.mark.parametrize("redirect_uri", [LOOPBACK, PRIVATE])
def test_apps_on_the_computer_get_theirs_too(cast: Cast, redirect_uri: str) -> None:
    flow = make_flow(cast, redirect_uri=redirect_uri)
    response = flow.answer(flow.ask())
    assert response["Location"].startswith(f"{redirect_uri}?code=")
    assert flow.redeem(answer_of(response)["code"]).status_code == 200


def test_cancelling_tells_the_client(flow: Flow) -> None:
    page = flow.ask()
    received = answer_of(flow.answer(page, "cancel"))
    assert set(received) == {"error", "error_description", "state", "iss"}
    assert (received["error"], received["state"], received["iss"]) == ("access_denied", "st4te", ISSUER)
    refused(flow.browser.get(page))
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.parametrize("action", ["", "yes", "ALLOW"])
def test_anything_else_is_no_answer(flow: Flow, action: str) -> None:
    page = flow.ask()
    assert flow.answer(page, action).status_code == 400
    assert not Grant.objects.exists()
    assert "code" in answer_of(flow.answer(page))


def test_a_form_without_its_token(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    strict = Browser(enforce_csrf_checks=True)
    strict.cookies = flow.browser.cookies
    refused(strict.post(page, {"action": "allow", "organization": str(cast.org.id)}), 403)
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    refused(flow.browser.post(page, {"action": "allow", "organization": str(cast.org.id)}, headers=foreign), 403)


def test_an_answer_counts_once(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    answer = {"action": "allow", "organization": str(cast.org.id)}
    assert flow.browser.post(page, answer).status_code == 302
    again = flow.browser.post(page, answer)
    assert (again.status_code, Grant.objects.count()) == (410, 1)
    assert "Start again from your app" in again.content.decode()


@pytest.mark.usefixtures("stopped_clock")
def test_a_request_waits_ten_minutes(flow: Flow) -> None:
    page = flow.ask()
    AuthorizationRequest.objects.update(expires_at=clock.now() + timedelta(seconds=2))
    assert flow.browser.get(page).status_code == 200
    AuthorizationRequest.objects.update(expires_at=clock.now())
    refused(flow.browser.get(page))
    refused(flow.browser.post(page, {"action": "allow"}))


def test_another_browser_or_person_cannot_finish_it(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    answer = {"action": "allow", "organization": str(cast.org.id)}
    for browser in (cast.client("member"), cast.client("owner"), cast.client("stranger")):
        refused(browser.get(page))
        refused(browser.post(page, answer))
    signed_out = Browser().post(page, answer)
    assert signed_out["Location"].startswith("/signin?next=")
    assert not Grant.objects.exists()
    assert "code" in answer_of(flow.answer(page))


def test_a_person_who_signs_in_anew_starts_anew(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    flow.browser.logout()
    flow.browser.force_login(cast.user("member"), backend="orgs.signin.backend.IdentityBackend")
    refused(flow.browser.get(page))


@pytest.mark.parametrize("request_id", ["", "x", "00000000-0000-4000-8000-000000000000", "\x00", "' OR 1=1--"])
def test_requests_that_do_not_exist(cast: Cast, request_id: str) -> None:
    refused(cast.client("member").get("/oauth/authorize/consent", {"request": request_id}))


def test_parameters_of_the_page_change_nothing(flow: Flow) -> None:
    page = flow.ask(scope="mcp")
    injected = f"{page}&redirect_uri=https://evil.example/&scope=mcp:all&client_id=x&state=evil"
    response = flow.answer(injected, redirect_uri="https://evil.example/", scope="x", state="evil")
    assert response["Location"].startswith(f"{WEB}?")
    assert answer_of(response)["state"] == "st4te"
    assert Grant.objects.get().scope == "mcp"


def test_a_client_that_is_deleted_meanwhile(flow: Flow) -> None:
    page = flow.ask()
    flow.client.delete()
    refused(flow.browser.get(page))


def test_the_organization_is_chosen_among_ones_own(cast: Cast, flow: Flow) -> None:
    foreign = flow.ask()
    answer = {"action": "allow", "organization": str(cast.other_org.id)}
    refused(flow.browser.post(foreign, answer), 404)
    refused(flow.browser.post(foreign, {"action": "allow", "organization": "x"}), 404)
    cast.other_org.memberships.create(user=cast.user("member"))
    page = flow.ask()
    text = shown(flow, page)
    assert "Acme" in text
    assert "Globex" in text
    assert flow.browser.get(page).context["chosen"].organization == cast.org
    other = f"{page}&organization={cast.other_org.id}"
    assert flow.browser.get(other).context["chosen"].organization == cast.other_org
    assert "code" in answer_of(flow.browser.post(page, answer))
    assert Grant.objects.get().organization == cast.other_org


def test_a_person_without_an_organization(cast: Cast) -> None:
    flow = make_flow(cast, "stranger")
    page = flow.ask()
    assert "You don’t belong to an organization yet" in shown(flow, page)
    refused(flow.browser.post(page, {"action": "allow", "organization": ""}), 404)
    assert answer_of(flow.answer(page, "cancel"))["error"] == "access_denied"


@pytest.fixture
def two_vendors(cast: Cast) -> None:
    """Acme is connected, Zeta is not."""
    load_vendor("https://vendor.example/mcp", slug="acme")
    load_vendor("https://vendor.example/mcp", slug="zeta")
    connect(cast.org, cast.user("owner"), slug="acme")


def states(flow: Flow, page: str) -> dict[str, str]:
    """Vendor to state as the page was given them."""
    return {each.vendor.slug: each.state.value for each in flow.browser.get(page).context["vendors"]}


@pytest.mark.usefixtures("two_vendors")
def test_which_vendors_would_work(cast: Cast, flow: Flow) -> None:
    owner, member = make_flow(cast, "owner"), flow
    assert states(owner, owner.ask()) == {"acme": "Connected"}
    assert states(owner, owner.ask(scope="mcp:zeta mcp:acme")) == {"acme": "Connected", "zeta": "Needs credentials"}
    assert states(member, member.ask()) == {"acme": "No access"}
    membership = cast.org.memberships.get(user=cast.user("member"))
    for slug in ("acme", "zeta"):
        ServerAccess.objects.create(organization=cast.org, membership=membership, vendor=slug)
    assert states(member, member.ask()) == {"acme": "Connected"}
    page = member.ask(scope="mcp:zeta")
    assert states(member, page) == {"zeta": "Needs credentials"}
    text = shown(member, page)
    assert "Ask an admin: Owner, Admin." in text
    assert f"Could you connect Zeta in Acme? http://testserver/orgs/{cast.org.id}/catalog" in text
    assert "Connect Zeta" not in text


@pytest.mark.usefixtures("two_vendors")
def test_a_vendor_that_does_not_respond_is_not_green(cast: Cast, shared: SQLiteStore) -> None:
    owner = make_flow(cast, "owner")
    page = owner.ask()
    assert "Not responding" not in shown(owner, page)
    put_health(shared, "acme", HealthStatus.DOWN)
    assert "Acme Not responding" in shown(owner, page)
    assert states(owner, page) == {"acme": "Connected"}, "the credentials are there all the same"


def test_a_member_is_given_words_for_an_admin(cast: Cast, flow: Flow) -> None:
    place = f"http://testserver/orgs/{cast.org.id}"
    page = shown(flow, flow.ask())
    assert "No vendor is connected yet. Ask an admin: Owner, Admin. You can send them this:" in page
    assert f"Could you connect a vendor in Acme? {place}/catalog" in page
    for slug in ("acme", "zeta"):
        load_vendor("https://vendor.example/mcp", slug=slug)
        connect(cast.org, cast.user("owner"), slug=slug)
    assert f"Could you give me access to Acme, Zeta in Acme? {place}/access" in shown(flow, flow.ask())
    membership = cast.org.memberships.get(user=cast.user("member"))
    ServerAccess.objects.create(organization=cast.org, membership=membership, vendor="acme")
    assert "Ask an admin" not in shown(flow, flow.ask())  # everything it may use works
    assert "Could you give me access to Zeta in Acme?" in shown(flow, flow.ask(scope="mcp:acme mcp:zeta"))
    owner = make_flow(cast, "owner", name="Could you")
    assert "Ask an admin" not in shown(owner, owner.ask(scope="mcp:acme mcp:zeta"))


@pytest.mark.usefixtures("two_vendors")
def test_a_warning_stands_beside_allow_until_one_vendor_works(cast: Cast, flow: Flow) -> None:
    disabled = re.compile(r'value="allow"\s+disabled')
    warning = "You can’t use any vendors in Acme yet. Missing: access to Acme. These people can help: Owner, Admin."
    assert warning in shown(flow, flow.ask())
    assert "Missing: access to Acme, Zeta." in shown(flow, flow.ask(scope="mcp:acme mcp:zeta"))
    assert not disabled.search(flow.browser.get(flow.ask()).content.decode())
    owner = make_flow(cast, "owner")
    assert "Missing: credentials for Zeta. You can change that yourself" in shown(owner, owner.ask(scope="mcp:zeta"))
    assert "You can’t use any vendors" not in shown(owner, owner.ask())
    other = make_flow(cast, "other_owner")
    assert "Missing: a connected vendor. You can change that yourself" in shown(other, other.ask())
    Organization.objects.update(default_server_access="all")
    assert "You can’t use any vendors" not in shown(flow, flow.ask())


@pytest.mark.usefixtures("two_vendors")
@pytest.mark.parametrize(("who", "scope"), [("member", "mcp:all"), ("member", "mcp:acme"), ("owner", "mcp:zeta")])
def test_an_app_may_be_allowed_before_anything_works(cast: Cast, who: str, scope: str) -> None:
    flow = make_flow(cast, who)
    code = answer_of(flow.answer(flow.ask(scope=scope)))["code"]
    assert flow.redeem(code).json()["scope"] == scope
    assert AdminAuditEntry.objects.filter(event_type="oauth.consent_granted", org_id=cast.org.id).count() == 1
    assert "code" in answer_of(flow.authorize(scope=scope))  # remembered as any other


def test_nobody_allows_an_app_for_an_organization_of_others(cast: Cast, flow: Flow) -> None:
    page = flow.ask()
    answer = {"action": "allow", "organization": str(cast.other_org.id)}
    refused(flow.browser.post(page, answer), 404)
    assert "code" in answer_of(flow.answer(page))  # the request still waits


@pytest.mark.usefixtures("two_vendors")
def test_an_admin_connects_a_vendor_on_the_same_page(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [ProbeAnswer(status=401), ProbeAnswer(status=200, tools_listed=True)]

    async def ask(*question: object) -> ProbeAnswer:
        return answers.pop(0)

    monkeypatch.setattr(credential_probe, "probe_credentials", ask)
    flow = make_flow(cast, "admin")
    page = flow.ask(scope="mcp:zeta")
    secret = "pl4in-v4lue"
    connecting = {"vendor": "zeta", "field-apiKey": secret}
    empty = flow.answer(page, "connect", vendor="zeta")
    assert empty.status_code == 400
    rejected = flow.answer(page, "connect", **connecting)
    assert rejected.status_code == 422
    assert secret not in rejected.content.decode()
    assert not Credential.objects.filter(vendor="zeta").exists()
    stored = flow.answer(page, "connect", **connecting)
    assert stored.status_code == 200
    assert stored.context["working"] == ["Zeta"]
    assert Credential.objects.filter(vendor="zeta", organization=cast.org).count() == 1
    assert "code" in answer_of(flow.answer(page))


@pytest.mark.usefixtures("two_vendors")
def test_this_page_is_no_way_around_the_plan_or_the_limit(cast: Cast, settings: LazySettings) -> None:
    flow = make_flow(cast, "admin")
    page = flow.ask(scope="mcp:zeta")
    settings.BILLING_MODE = "manual"
    lapsed = flow.answer(page, "connect", vendor="zeta", **{"field-apiKey": "x"})
    assert lapsed.status_code == 402
    assert "active plan" in lapsed.content.decode()
    settings.BILLING_MODE = "disabled"
    statuses = [flow.answer(page, "connect", vendor="zeta").status_code for _ in range(10)]
    assert statuses == [400] * 9 + [429]
    assert not Credential.objects.filter(vendor="zeta").exists()


@pytest.mark.usefixtures("two_vendors")
def test_nobody_else_connects_a_vendor_here(cast: Cast, flow: Flow) -> None:
    Organization.objects.update(default_server_access="all")
    page = flow.ask(scope="mcp:zeta")
    for fields in ({"vendor": "zeta", "field-apiKey": "x"}, {"vendor": "acme", "field-apiKey": "x"}, {}):
        assert flow.answer(page, "connect", **fields).status_code == 400
    admin = make_flow(cast, "admin")
    other = admin.ask(scope="mcp:acme")
    assert admin.answer(other, "connect", vendor="zeta", **{"field-apiKey": "x"}).status_code == 400
    assert not Credential.objects.filter(vendor="zeta").exists()


def test_more_people_than_one_may_allow_the_same_client(cast: Cast, flow: Flow) -> None:
    another = make_person("another")
    cast.org.memberships.create(user=another)
    browser = Browser()
    browser.force_login(another, backend="orgs.signin.backend.IdentityBackend")
    second = Flow(flow.client, browser)
    assert flow.code() != second.code()
    assert {row.user for row in Grant.objects.all()} == {another, cast.user("member")}
