"""The OpenAPI document says what the routes are, and the routes answer as it says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client as Browser

from gateway.site.api_docs import document
from gateway.web.openapi_names import OPERATIONS
from tests.contracts.test_routes import TABLE, World, cases, undone, world, world_of_module  # noqa: F401
from tests.contracts.test_token_matrix import needed_scope
from tests.contracts.url_walk import api_addresses
from tests.factories.streamed import body_of

# Long lists, of which a caller may ask for parts.
PAGED = {
    ("GET", f"/api/orgs/{{org_id}}/{name}")
    for name in (
        "members",
        "invitations",
        "teams",
        "service-clients",
        "server-access",
        "access-requests",
        "log-shipping",
        "alerts",
        "alert-messages",
    )
}
PAGED.add(("GET", "/api/profile/tokens"))
# Further names of the query string; tests/api/audit tries each.
_OF_LOGS = set("org_id start end limit offset cursor format".split())
QUERY = {
    ("DELETE", "/api/profile/vendor-connections/{vendor}"): {"org_id"},
    ("GET", "/api/audit"): _OF_LOGS | set("user_id team_id vendor tool kind item source status request_id".split()),
    ("GET", "/api/audit/mine"): _OF_LOGS | set("vendor tool kind item source status request_id".split()),
    ("GET", "/api/audit/admin"): _OF_LOGS | set("event_type actor_id target_id".split()),
} | {("GET", f"/api/dashboard/{name}"): {"org_id", "range", "start", "end"} for name in ("usage", "savings", "vendors")}
QUERY |= {
    ("POST", f"/api/orgs/{{org_id}}{holder}/credentials/{{vendor}}"): {"anyway"}
    for holder in ("", "/teams/{team_id}", "/service-clients/{client_id}")
}
QUERY["POST", "/api/orgs/{org_id}/credentials/{vendor}/keys/{key_id}"] = {"anyway"}
NAMED = {
    ("GET", "/api/vendors"),
    ("GET", "/api/orgs/{org_id}/members"),
    ("GET", "/api/orgs/{org_id}/teams"),
    ("GET", "/api/orgs/{org_id}/service-clients"),
    ("GET", "/api/orgs/{org_id}/credentials/{vendor}/keys"),
}
QUERY |= {route: {"name"} for route in NAMED}


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, item in document()["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def test_it_is_openapi_3_1_and_names_exactly_the_routes() -> None:
    assert document()["openapi"] == "3.1.0"
    assert set(operations()) == set(TABLE)


def test_every_operation_has_its_own_name_and_says_what_it_needs() -> None:
    found = operations()
    names = [operation["operationId"] for operation in found.values()]
    assert len(set(names)) == len(names)
    for (method, path), operation in found.items():
        assert operation["summary"]
        by_token: list[dict[str, list[str]]] = [] if needed_scope(method, path) is None else [{"managementToken": []}]
        assert operation["security"] == [{"session": []}, *by_token]
        assert {"401", "429"} <= set(operation["responses"])
        assert str(TABLE[(method, path)].role or "Any signed-in person") in operation["description"]
        in_path = set(re.findall(r"{(\w+)}", path))
        creates = {"Idempotency-Key"} if "201" in operation["responses"] else set()
        parts = {"limit", "cursor"} if (method, path) in PAGED else set()
        assert {each["name"] for each in operation.get("parameters", [])} == in_path | creates | parts | QUERY.get(
            (method, path), set()
        )


def test_every_operation_has_a_name_of_ours() -> None:
    assert set(OPERATIONS) == set(TABLE)
    assert len(set(OPERATIONS.values())) == len(OPERATIONS)


def test_schemas_have_names_that_a_customer_knows() -> None:
    names = set(document()["components"]["schemas"])
    assert not [name for name in names if name.endswith(("Out", "In", "Body"))]
    assert {"Error", "Member", "Team", "TeamInput", "ServiceClient", "CreatedServiceClient"} <= names
    referred = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document())))
    assert referred <= names


def bodies() -> dict[str, tuple[Any, dict[str, Any]]]:
    """The serializer and the example of each operation with a body."""
    found = {}
    for address in api_addresses():
        for method, operation in getattr(address.view, "operations", {}).items():
            if operation.body is not None:
                media = operations()[method, address.template]["requestBody"]["content"]["application/json"]
                found[f"{method} {address.template}"] = (operation.body, media["example"])
    return found


@pytest.mark.parametrize("label", bodies())
def test_the_example_of_a_body_is_accepted_and_has_every_member(label: str) -> None:
    serializer_class, example = bodies()[label]
    serializer = serializer_class(data=example)
    assert serializer.is_valid(), serializer.errors
    members = getattr(serializer, "fields", {})
    assert not members or set(example) == {name for name, each in members.items() if not each.read_only}


def test_nothing_in_it_is_for_us() -> None:
    text = json.dumps(document())
    assert "Spec:" not in text
    assert "x-spec" not in text
    assert not re.search(r"\bD\d+\b", text)


def test_secrets_are_written_and_never_read() -> None:
    schemas = document()["components"]["schemas"]
    holders = {
        name
        for name, schema in schemas.items()
        for member in schema.get("properties", {})
        if "secret" in member.lower()
    }
    # Of a service client and of alert settings, the times of a rotation; of a change, the new secret, once.
    assert holders == {
        *("AlertSettings", "ChangedAlertSettings", "CreatedServiceClient", "RotatedSecret", "ServiceClient"),
        "VendorField",
    }
    assert "fields" not in schemas["NamedKey"]["properties"]
    assert [name for name, schema in schemas.items() if "token" in schema.get("properties", {})] == [
        "CreatedManagementToken",
        "Invitation",
    ]


@pytest.mark.parametrize(("method", "path", "row"), cases())
def test_the_answer_has_the_documented_members(
    world: World,  # noqa: F811
    method: str,
    path: str,
    row: Any,
) -> None:
    answer = undone(lambda: world.send("owner", method, path + row.query, row.body))
    documented = operations()[(method, path)]["responses"]
    assert str(answer.status_code) in documented
    if answer.status_code == 204:
        assert answer.content == b""
        return
    schema = documented[str(answer.status_code)]["content"]["application/json"]["schema"]
    assert_shape(json.loads(answer.content), schema)


@pytest.mark.parametrize("path", [path for (_, path), names in QUERY.items() if "format" in names])
def test_a_download_is_documented_with_its_media_type(world: World, path: str) -> None:  # noqa: F811
    answer = world.send("owner", "GET", f"{path}?org_id={{org_id}}&format=csv", {})
    body_of(answer)  # to its end, or the export keeps its place among those of the organization
    documented = operations()[("GET", path)]["responses"]["200"]["content"]
    assert set(documented) == {"application/json", "text/csv"}
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, "text/csv")


def assert_shape(found: Any, schema: dict[str, Any]) -> None:
    """Members, no more and no less; arrays by their first element."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if schema.get("type") == "array":
        assert isinstance(found, list)
        for each in found[:1]:
            assert_shape(each, schema["items"])
    elif "properties" in schema:
        assert set(schema.get("required", ())) <= set(found) <= set(schema["properties"])


def test_it_is_served_with_a_page_of_our_own(db: None) -> None:
    served = Browser().get("/api/schema")
    assert (served.status_code, served["Content-Type"]) == (200, "application/json")
    assert served.json() == json.loads(json.dumps(document()))
    assert Browser().post("/api/schema").status_code == 405
    page = Browser().get("/docs/api")
    assert page.status_code == 200
    text = page.content.decode()
    assert "POST /api/orgs/{org_id}/invitations" in text
    assert set(re.findall(r'(?:src|href)="(https?:)?//', text)) == set()


def test_each_operation_has_a_page_to_try_it(db: None) -> None:
    page = Browser().get("/docs/api/create_team/try")
    assert page.status_code == 200
    text = page.content.decode()
    assert 'data-path="/api/orgs/{org_id}/teams"' in text
    assert "Night shift" in text
    assert "data-bearer" in text
    assert "data-bearer" not in Browser().get("/docs/api/delete_organization/try").content.decode(), "signed in only"
    assert Browser().get("/docs/api/no_such/try").status_code == 404
    listed = Browser().get("/docs/api").content.decode()
    assert all(f"/docs/api/{operation['operationId']}/try" in listed for operation in operations().values())
