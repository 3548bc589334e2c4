"""GET, POST /api/orgs/:orgId/log-shipping; GET, PATCH, DELETE …/:destinationId. Spec: §4.13 · D95-D97, D140"""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

from audit.models import AdminAuditEntry, LogDestination
from audit.shipping.config_sealing import config_of
from audit.shipping.platforms.registry import PLATFORMS
from tests.api.audit.shipping.stage import PlayedPlatform, answers, deliver_due, record_calls
from tests.factories.api import Api

PATH = "/orgs/{org}/log-shipping"
URL = "https://logs.example.com/hook"
AZURE_URL = "https://dce-a1b2.eastus-1.ingest.monitor.azure.com"
AZURE = {
    "tenantId": "11111111-2222-3333-4444-555555555555",
    "clientId": "66666666-7777-8888-9999-000000000000",
    "clientSecret": "azure-client-secret-value",
    "dcrImmutableId": "dcr-0123456789abcdef0123456789abcdef",
}


def body_of(platform: str = "webhook", url: str | None = URL, **config: object) -> dict[str, Any]:
    address = {} if url is None else {"endpointUrl": url}
    return {"label": "SIEM", "platform": platform, **address, "config": config}


def create(api: Api, body: dict[str, Any] | None = None, who: str = "admin", path: str = PATH) -> dict[str, Any]:
    answer = api.send(who, "POST", path, body or body_of())
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def stored(made: dict[str, Any]) -> LogDestination:
    return LogDestination.objects.get(pk=made["id"])


def refusal(api: Api, body: object, method: str = "POST", path: str = PATH) -> tuple[int, str, dict[str, list[str]]]:
    answer = api.send("admin", method, path, body)
    found = answer.json()
    return answer.status_code, found["error"], found.get("fields", {})


def test_a_new_destination_has_sent_nothing(api: Api) -> None:
    made = create(api, {**body_of(secret="a-signing-secret"), "label": " SIEM ", "id": "x", "status": "ok"})
    row = stored(made)
    assert made == {
        "id": str(row.pk),
        "label": "SIEM",
        "platform": "webhook",
        "endpointUrl": URL,
        "config": {"secret": "a-si********"},
        "enabled": True,
        "status": "new",
        "lastDeliveryAt": None,
        "lastError": None,
        "createdAt": made["createdAt"],
        # On SQLite, what this transaction wrote can be read already.
        "lagRecords": made["lagRecords"],
        "lagSeconds": 0,
        "delivered": 0,
        "refused": 0,
        "skipped": 0,
    }
    assert api.get("owner", PATH) == [made]
    assert api.get("admin", f"{PATH}/{row.pk}") == made
    assert api.get("other_owner", "/orgs/{other}/log-shipping") == []
    assert api.events() == ["log_shipping.created"]
    entry = AdminAuditEntry.objects.get(org_id=api.cast.org.id)
    assert (entry.target_id, entry.target_label, entry.metadata) == (str(row.pk), "SIEM", {"platform": "webhook"})


def test_each_organization_sees_its_own(api: Api) -> None:
    ours, theirs = create(api), create(api, who="other_owner", path="/orgs/{other}/log-shipping")
    assert [each["id"] for each in api.get("admin", PATH)] == [ours["id"]]
    assert [each["id"] for each in api.get("other_owner", "/orgs/{other}/log-shipping")] == [theirs["id"]]
    for method, body in (("GET", None), ("PATCH", {"enabled": False}), ("DELETE", None)):
        assert api.refused("admin", method, f"{PATH}/{theirs['id']}", body) == (404, "not_found")
    assert api.refused("admin", "GET", f"{PATH}/no-id") == (404, "not_found")
    assert stored(theirs).enabled


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("stranger", 404), ("nobody", 401)])
def test_who_may_not(api: Api, who: str, status: int) -> None:
    one = f"{PATH}/{create(api)['id']}"
    calls: list[tuple[str, str, Any]] = [
        ("GET", PATH, None),
        ("POST", PATH, body_of()),
        ("GET", one, None),
        ("PATCH", one, {"enabled": False}),
        ("DELETE", one, None),
        ("POST", f"{one}/test", None),
        ("POST", f"{one}/replay", {"since": "2026-01-31"}),
    ]
    assert {api.refused(who, method, path, body)[0] for method, path, body in calls} == {status}
    assert LogDestination.objects.get().enabled


@pytest.mark.parametrize(
    ("platform", "url", "config"),
    [
        ("platform_a", "https://es.example.com:9200", {"apiKey": "an-elastic-api-key", "index": "gateway"}),
        ("platform_b", "https://loki.example.com", {"username": "12345678", "password": "a-loki-password"}),
        ("platform_c", "https://splunk.example.com:8088", {"token": "a-splunk-token"}),
        ("platform_d", None, {"token": "a-better-token"}),
        ("platform_e", "https://logscale.example.com", {"token": "a-logscale-token"}),
        ("platform_f", "https://otlp.example.com", {"headers": "api-key=an-otlp-value"}),
        ("platform_g", AZURE_URL, AZURE),
        ("webhook", URL, {}),
    ],
)
def test_every_platform_takes_its_config_and_shows_it_masked(
    api: Api, platform: str, url: str | None, config: dict[str, str]
) -> None:
    made = create(api, body_of(platform, url, **config))
    secrets = {field.name for field in PLATFORMS[platform].fields if field.secret}
    assert made["config"] == {
        name: value[:4] + "********" if name in secrets else value for name, value in config.items()
    }
    assert made["platform"] == platform
    assert made["endpointUrl"] == (url or PLATFORMS[platform].preset_url)
    assert config_of(stored(made)) == config


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("secret", "1234567", "********"), ("secret", "12345678", "1234********"), ("secret", "x" * 300, "xxxx********")],
)
def test_a_mask_hides_the_length(api: Api, name: str, value: str, shown: str) -> None:
    assert create(api, body_of(**{name: value}))["config"] == {name: shown}


@pytest.mark.parametrize(
    ("alias", "value"),
    [(alias, platform.value) for platform in PLATFORMS.values() for alias in platform.aliases],
)
def test_product_names_mean_the_neutral_value(api: Api, alias: str, value: str) -> None:
    answer = api.send("admin", "POST", PATH, {"label": "SIEM", "platform": f" {alias.upper()} ", "config": {}})
    # The rest is missing: with an unknown platform that would be the first complaint.
    assert "platform" not in answer.json().get("fields", {}), (alias, value)
    assert answer.status_code == 400


def test_an_alias_is_stored_as_the_neutral_value(api: Api) -> None:
    assert create(api, body_of("Splunk", "https://splunk.example.com", token="a-splunk-token"))["platform"] == (
        "platform_c"
    )


@pytest.mark.parametrize("platform", ["", "platform_h", "syslog", 7, None, ["webhook"], "x" * 101])
def test_an_unknown_platform_is_refused(api: Api, platform: object) -> None:
    status, error, fields = refusal(api, {**body_of(), "platform": platform})
    assert (status, error, set(fields)) == (400, "invalid", {"platform"})


@pytest.mark.parametrize("platform", ["platform_c", "platform_d", "platform_e"])
@pytest.mark.parametrize("config", [{}, {"token": ""}, {"token": None}, {"token": "  "}])
def test_a_token_is_required(api: Api, platform: str, config: dict[str, object]) -> None:
    url = PLATFORMS[platform].preset_url or URL
    status, error, fields = refusal(api, body_of(platform, url, **config))
    assert (status, error, set(fields)) == (400, "config_missing", {"config.token"})
    assert not LogDestination.objects.exists()


@pytest.mark.parametrize("name", sorted(AZURE))
def test_all_four_values_are_required(api: Api, name: str) -> None:
    config = {key: value for key, value in AZURE.items() if key != name}
    status, error, fields = refusal(api, body_of("platform_g", AZURE_URL, **config))
    assert (status, error, set(fields)) == (400, "config_missing", {f"config.{name}"})


@pytest.mark.parametrize(
    ("platform", "url", "config"),
    [
        ("platform_d", "https://logs.example.com", {"token": "a-better-token"}),
        ("platform_g", "https://logs.example.com", AZURE),
        ("platform_g", "https://ingest.monitor.azure.com.example.com", AZURE),
        ("platform_g", "https://evilingest.monitor.azure.com", AZURE),
    ],
)
def test_a_host_of_another_is_refused(api: Api, platform: str, url: str, config: dict[str, str]) -> None:
    status, error, fields = refusal(api, body_of(platform, url, **config))
    assert (status, error, set(fields)) == (400, "endpoint_not_allowed", {"endpointUrl"})


BAD_URLS = [
    "http://logs.example.com",
    "https://user:pass@logs.example.com",
    "https://logs.example.com:22",
    "https://logs.example.com:99999",
    "https://127.0.0.1",
    "https://10.0.0.1",
    "https://169.254.169.254/latest",
    "https://[::1]",
    "https://2130706433",
    "https://logs.example.com/#part",
    "https://logs example.com",
    "https://",
    "ftp://logs.example.com",
    "logs.example.com",
    "https://logs.example.com/\u202e",
]


@pytest.fixture
def public(settings: LazySettings) -> None:
    """As a deployment is set up, not as `make run` is."""
    settings.ALLOW_PRIVATE_ENDPOINTS = False


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize("url", BAD_URLS)
def test_a_bad_address_is_refused_and_changes_nothing(api: Api, url: str) -> None:
    made = create(api)
    for method, path, body in (
        ("POST", PATH, body_of(url=url)),
        ("PATCH", f"{PATH}/{made['id']}", {"endpointUrl": url}),
    ):
        status, error, fields = refusal(api, body, method, path)
        assert (status, error, set(fields)) == (400, "endpoint_not_allowed", {"endpointUrl"})
    assert LogDestination.objects.get().endpoint_url == URL


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize("port", [443, 8088, 8443, 9200, 65535])
def test_ports_of_platforms_are_allowed(api: Api, port: int) -> None:
    assert create(api, body_of(url=f"https://logs.example.com:{port}/x"))["endpointUrl"].endswith(f":{port}/x")


@pytest.mark.parametrize("url", [None, "", "   "])
def test_an_address_may_be_left_out_only_where_there_is_a_preset_one(api: Api, url: str | None) -> None:
    status, _, fields = refusal(api, body_of(url=url))
    assert (status, set(fields)) == (400, {"endpointUrl"})
    assert create(api, body_of("platform_d", url, token="a-better-token"))["endpointUrl"] == (
        PLATFORMS["platform_d"].preset_url
    )


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ("text", {"config"}),
        ([], {"config"}),
        (None, {"config"}),
        ({"unknown": "x"}, {"config"}),
        ({"secret": 7}, {"config.secret"}),
        ({"secret": {"a": "b"}}, {"config.secret"}),
        ({"secret": "a\u001bb"}, {"config.secret"}),
        ({"secret": "x" * 4_097}, {"config.secret"}),
        ({"secret": "x" * 100 * 1024}, {"config.secret"}),
        ({"x" * 100 * 1024: "y"}, {"config"}),
    ],
    ids=range(10),
)
def test_a_bad_config_is_refused_and_not_repeated(api: Api, config: object, fields: set[str]) -> None:
    answer = api.send("admin", "POST", PATH, {**body_of(), "config": config})
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == fields
    assert len(answer.content) < 1_000
    assert not LogDestination.objects.exists()


def test_the_longest_value_is_kept(api: Api) -> None:
    assert config_of(stored(create(api, body_of(secret="x" * 4_096)))) == {"secret": "x" * 4_096}


@pytest.mark.parametrize("label", ["", "   ", 7, None, "x" * 101, "a\u202eb"])
def test_a_bad_label_is_refused(api: Api, label: object) -> None:
    one = f"{PATH}/{create(api)['id']}"
    assert api.faults("admin", "POST", PATH, {**body_of(), "label": label}) == {"label"}
    assert api.faults("admin", "PATCH", one, {"label": label}) == {"label"}
    assert LogDestination.objects.get().label == "SIEM"


def test_an_eleventh_destination_is_refused_until_one_goes(api: Api) -> None:
    made = [create(api) for _ in range(10)]
    assert api.refused("admin", "POST", PATH, body_of()) == (409, "limit_reached")
    create(api, who="other_owner", path="/orgs/{other}/log-shipping")
    assert api.send("admin", "DELETE", f"{PATH}/{made[0]['id']}").status_code == 204
    create(api)


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_pauses_and_deletes(api: Api, settings: LazySettings) -> None:
    settings.BILLING_MODE = "disabled"
    one = f"{PATH}/{create(api)['id']}"
    settings.BILLING_MODE = "manual"
    for method, path, body in (
        ("GET", PATH, None),
        ("POST", PATH, {}),
        ("GET", one, None),
        ("POST", f"{one}/test", None),
        ("POST", f"{one}/replay", {}),
        ("PATCH", one, {}),
        ("PATCH", one, {"enabled": True}),
        ("PATCH", one, {"enabled": "no"}),
        ("PATCH", one, {"enabled": False, "endpointUrl": "https://other.example.net/hook"}),
        ("PATCH", one, {"label": "New"}),
    ):
        assert api.refused("admin", method, path, body) == (402, "subscription_required")
    assert api.send("admin", "PATCH", one, {"enabled": False}).json()["enabled"] is False
    assert api.send("admin", "DELETE", one).status_code == 204
    assert not LogDestination.objects.exists()


def test_a_changed_destination_keeps_what_is_masked(api: Api) -> None:
    made = create(api, body_of(secret="a-signing-secret", previousSecret="the-one-before"))
    one = f"{PATH}/{made['id']}"
    shown = made["config"]
    changed = api.send("admin", "PATCH", one, {"label": "New", "config": shown}).json()
    assert (changed["label"], changed["config"]) == ("New", shown)
    assert config_of(stored(made)) == {"secret": "a-signing-secret", "previousSecret": "the-one-before"}
    api.send("admin", "PATCH", one, {"config": {"secret": "another-secret", "previousSecret": ""}})
    assert config_of(stored(made)) == {"secret": "another-secret"}
    api.send("admin", "PATCH", one, {"endpointUrl": f"{URL}/2"})
    row = stored(made)
    assert (row.endpoint_url, config_of(row)) == (f"{URL}/2", {"secret": "another-secret"})
    assert api.events() == ["log_shipping.created", *["log_shipping.updated"] * 3]


@pytest.mark.parametrize("kept", [{}, {"secret": "a-si********"}], ids=["left out", "as it was shown"])
def test_a_stored_secret_does_not_follow_to_another_host(api: Api, kept: dict[str, str]) -> None:
    made = create(api, body_of(secret="a-signing-secret"))
    one, moved = f"{PATH}/{made['id']}", "https://other.example.net/hook"
    for url in (moved, URL.replace("https://", "https://x."), "https://logs.example.com:8443/hook"):
        assert api.faults("admin", "PATCH", one, {"endpointUrl": url, "config": kept}) == {"config.secret"}, url
    assert (stored(made).endpoint_url, config_of(stored(made))) == (URL, {"secret": "a-signing-secret"})
    entered = {"endpointUrl": moved, "config": {"secret": "another-secret"}}
    assert api.send("admin", "PATCH", one, entered).json()["endpointUrl"] == moved
    assert config_of(stored(made)) == {"secret": "another-secret"}
    assert api.send("admin", "PATCH", one, {"endpointUrl": URL, "config": {"secret": ""}}).status_code == 200
    assert config_of(stored(made)) == {}


@pytest.mark.parametrize("mask", ["********", "olds********"])
def test_a_mask_is_never_stored_as_the_secret(api: Api, mask: str) -> None:
    one = f"{PATH}/{create(api, body_of(secret='a-signing-secret'))['id']}"
    assert api.faults("admin", "PATCH", one, {"config": {"secret": mask}}) == {"config.secret"}
    assert api.faults("admin", "POST", PATH, body_of(secret=mask)) == {"config.secret"}


def test_pausing_and_resuming(api: Api) -> None:
    one = f"{PATH}/{create(api)['id']}"
    assert api.send("admin", "PATCH", one, {"enabled": False}).json()["enabled"] is False
    assert api.send("admin", "PATCH", one, {}).json()["enabled"] is False
    assert api.send("admin", "PATCH", one, {"enabled": True}).json()["enabled"] is True
    assert api.events() == ["log_shipping.created", *["log_shipping.updated"] * 2]
    for wrong in ("true", 1, None):
        assert api.faults("admin", "PATCH", one, {"enabled": wrong}) == {"enabled"}


def test_the_platform_stays(api: Api) -> None:
    """Another platform has another configuration: it is another destination."""
    one = f"{PATH}/{create(api)['id']}"
    assert api.send("admin", "PATCH", one, {"platform": "platform_c"}).json()["platform"] == "webhook"


def test_deleting_ends_it(api: Api) -> None:
    one = f"{PATH}/{create(api)['id']}"
    answer = api.send("admin", "DELETE", one)
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.refused("admin", "DELETE", one) == (404, "not_found")
    assert api.events() == ["log_shipping.created", "log_shipping.deleted"]


def test_a_configuration_that_does_not_open_is_shown_empty_and_can_be_entered_again(api: Api) -> None:
    made = create(api, body_of(secret="a-signing-secret"))
    LogDestination.objects.update(config_key_id="lost")
    one = f"{PATH}/{made['id']}"
    assert api.get("admin", one)["config"] == {}
    assert api.send("admin", "PATCH", one, {"config": {"secret": "entered-again"}}).json()["config"] == {
        "secret": "ente********"
    }


def test_a_repeated_request_makes_one_destination(api: Api) -> None:
    body, key = body_of(secret="a-signing-secret"), {"headers": {"Idempotency-Key": "once"}}
    first, again = (api.send("admin", "POST", PATH, body, **key) for _ in range(2))
    assert (first.status_code, again.status_code, again["Idempotent-Replayed"]) == (201, 201, "true")
    assert first.json() == again.json()
    assert LogDestination.objects.count() == 1


def test_what_waits_and_what_became_of_the_rest(committed_api: Api) -> None:
    one = f"{PATH}/{create(committed_api)['id']}"
    record_calls("r-1", "r-2", org_id=committed_api.cast.org.id)
    record_calls("theirs", org_id=committed_api.cast.other_org.id)
    waiting = committed_api.get("admin", one)
    assert (waiting["lagRecords"], waiting["status"]) == (3, "new")
    deliver_due(PlayedPlatform(list(answers(503))))
    failed = committed_api.get("admin", one)
    assert (failed["status"], failed["lastError"], failed["lastDeliveryAt"]) == ("retrying", "503: not now", None)
    committed_api.send("admin", "PATCH", one, {"config": {"secret": "tried at once"}})
    deliver_due(PlayedPlatform(refuses={"r-2"}))
    done = committed_api.get("admin", one)
    assert (done["status"], done["lastError"], done["lagRecords"], done["lagSeconds"]) == ("ok", None, 0, 0)
    assert (done["delivered"], done["refused"], done["skipped"]) == (3, 1, 0)
    assert done["lastDeliveryAt"] > done["createdAt"]
