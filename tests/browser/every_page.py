"""All pages of the demo organization: an id for each variable of a route, and browsers of its people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.page_walk import VARIABLE, page_paths, page_routes
from tests.browser.conftest import PATIENCE_S, Visitor, new_email

ADMIN, MEMBER = "Ada Admin", "Mo Member"


def role_visitors(make: Callable[..., Visitor], mark: str = "") -> tuple[dict[str, Visitor], dict[str, str]]:
    """Signed-in owner, admin and member of the demo organization, and the address of each page by its route.

    Names of things end with `mark`: tests share the organization, which has one thing of a name.
    """
    owner = make()
    org = owner.sign_in_owner()
    found = {"owner": owner, **colleagues(make, owner, org)}
    return found, page_paths(things(owner, org, member_id(owner, org, MEMBER), mark))


def newcomers(make: Callable[..., Visitor]) -> tuple[dict[str, Visitor], dict[str, str]]:
    """The same of an organization that has nothing yet."""
    owner = make()
    org = owner.found_organization("Leere Halle")
    return {"owner": owner, **colleagues(make, owner, org)}, paths_of_nothing(owner, org)


def paths_of_nothing(owner: Visitor, org: str) -> dict[str, str]:
    """The pages of an organization that needs to have no more than people."""
    known = {
        "org_id": org.rpartition("/")[2],
        "user_id": member_id(owner, org, MEMBER),
        "vendor": "acme",
        "tool": "acme_list_devices",
        "platform": "webhook",
    }
    routes = [route for route in page_routes() if set(VARIABLE.findall(route)) <= known.keys()]
    return {route: "/" + VARIABLE.sub(lambda name: known[name[1]], route) for route in routes}


def colleagues(make: Callable[..., Visitor], owner: Visitor, org: str) -> dict[str, Visitor]:
    """An admin and a member, who were invited."""
    found = {}
    for role, name in (("admin", ADMIN), ("member", MEMBER)):
        found[role] = make()
        found[role].sign_in(new_email(), name)
        post(found[role], owner.invitation(org))
    answer = owner.page.context.request.patch(
        f"{owner.base}/api{org}/members/{member_id(owner, org, ADMIN)}/role", data={"role": "admin"}
    )
    assert answer.ok, answer.text()
    return found


def post(someone: Visitor, path: str) -> None:
    """The form of a page, sent as it is."""
    page = someone.open(path)
    page.get_by_role("button", name="Join").click()
    page.wait_for_url("**/orgs/*")


def get(someone: Visitor, path: str) -> Any:
    """The API's answer, as an object."""
    answer = someone.page.context.request.get(f"{someone.base}/api{path}", timeout=PATIENCE_S * 1000)
    assert answer.ok, (path, answer.status)
    return answer.json()


def member_id(someone: Visitor, org: str, name: str) -> str:
    """The newest member of that name."""
    people = get(someone, f"{org}/members")
    return str([each["id"] for each in people if each["name"] == name][-1])


def things(owner: Visitor, org: str, member: str, mark: str) -> dict[str, str]:
    """Something of each kind that a route names."""
    invitation = owner.post(f"/api{org}/invitations")
    destination = {"label": f"SIEM{mark}", "platform": "webhook", "endpointUrl": owner.ready["vendor_url"]}
    key = owner.post(
        f"/api{org}/credentials/acme/keys",
        name=f"Night key{mark}",
        fields={"apiKey": f"demo-browser-tests-0001{mark.strip()}"},
    )
    team_id = owner.post(f"/api{org}/teams", name=f"Night shift{mark}")["id"]
    client = owner.post(f"/api{org}/service-clients", name=f"Triage bot{mark}")
    for holder in (f"teams/{team_id}", f"service-clients/{client['id']}"):
        owner.post(f"/api{org}/{holder}/credentials/acme", apiKey=f"demo-browser-tests-0001{mark.strip()}")
    get(owner, f"{org}/tool-access/acme/discover")
    wanted = {"org_id": org.rpartition("/")[2], "name": f"Script{mark}", "scope": "read"}
    token = owner.post("/api/profile/tokens", **wanted)
    return {
        "org_id": org.rpartition("/")[2],
        "user_id": member,
        "team_id": team_id,
        "client_id": client["client_id"],
        "vendor": "acme",
        "tool": "acme_list_devices",
        "invitation_id": invitation["id"],
        "token": invitation["inviteUrl"].rpartition("/")[2],
        "destination_id": owner.post(f"/api{org}/log-shipping", **destination)["id"],
        "platform": "webhook",
        "key_id": key["id"],
        "credential_id": key["id"],
        "token_id": token["id"],
        "issuer_id": owner.post(f"/api{org}/trusted-issuers", issuer=owner.ready["idp_url"])["id"],
    }
