"""Replacing keeps what is stored until the vendor has accepted the new fields, over the API and on the page."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import AdminAuditEntry
from credentials.models import Credential
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from credentials.vendor_check import ProbeAnswer
from proxy.vendors import credential_probe
from tests.api.pages.conftest import text
from tests.factories.api import Api
from tests.factories.credentials import Setting, make_setting
from tests.factories.tenant import load_vendor

LEVELS = ["organization", "team", "service_client"]
KEPT = (409, "credential_unconfirmed")
OLD, NEW = {"apiKey": "0ld-key-0f-the-vendor"}, {"apiKey": "n3w-key-0f-the-vendor"}


class Vendor:
    """Answers checks with `status`; None: not at all."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.asked = 0

    async def answer(self, *question: object) -> ProbeAnswer:
        self.asked += 1
        return ProbeAnswer(self.status, tools_listed=self.status == 200, tools=4 if self.status == 200 else None)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Vendor:
    made = Vendor()
    load_vendor("http://127.0.0.1:9/mcp")
    monkeypatch.setattr(credential_probe, "probe_credentials", made.answer)
    return made


@pytest.fixture
def setting(api: Api, vendor: Vendor) -> Setting:
    return make_setting(api.cast)


def api_path(setting: Setting, level: str) -> str:
    owner = {
        "organization": "",
        "team": f"/teams/{setting.team.id}",
        "service_client": f"/service-clients/{setting.service_client.client_id}",
    }[level]
    return f"/orgs/{{org}}{owner}/credentials/fake"


def page_path(api: Api, setting: Setting, level: str) -> str:
    return (
        f"/orgs/{api.cast.org.id}"
        + {
            "organization": "/vendors/fake/settings",
            "team": f"/teams/{setting.team.id}/credentials/fake",
            "service_client": f"/agents/{setting.service_client.client_id}/credentials/fake",
        }[level]
    )


def opened(api: Api) -> dict[str, Any]:
    (ref,) = credential_refs(api.cast.org.id)
    return open_fields(ref, organization_id=api.cast.org.id, wrapped=wrapped_keys(api.cast.org.id))


def start(api: Api, setting: Setting, level: str) -> None:
    assert api.send("admin", "POST", api_path(setting, level), OLD).status_code == 201
    assert opened(api) == OLD


@pytest.mark.parametrize("level", LEVELS)
def test_accepted_fields_take_its_place(api: Api, setting: Setting, level: str) -> None:
    start(api, setting, level)
    assert api.send("admin", "POST", api_path(setting, level), NEW).status_code == 201
    assert opened(api) == NEW
    row = Credential.objects.get()
    assert (row.revision, row.check_verdict, row.check_tools, row.stored_by) == (
        2,
        "validated",
        4,
        api.cast.user("admin"),
    )
    assert row.checked_at == row.validated_at == row.stored_at


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("status", "refusal"),
    [(401, (422, "credential_rejected")), (403, (422, "credential_rejected")), (None, KEPT), (503, KEPT)],
)
def test_without_the_vendors_word_the_old_ones_stay(
    api: Api, setting: Setting, vendor: Vendor, level: str, status: int | None, refusal: tuple[int, str]
) -> None:
    start(api, setting, level)
    before = Credential.objects.values().get()
    events = api.events()
    vendor.status = status
    assert api.refused("admin", "POST", api_path(setting, level), NEW) == refusal
    assert Credential.objects.values().get() == before
    assert opened(api) == OLD
    assert api.events() == events


@pytest.mark.parametrize("level", LEVELS)
def test_silence_can_be_overridden_and_a_rejection_cannot(
    api: Api, setting: Setting, vendor: Vendor, level: str
) -> None:
    start(api, setting, level)
    path = api_path(setting, level)
    vendor.status = 401
    assert api.refused("admin", "POST", f"{path}?anyway=true", NEW) == (422, "credential_rejected")
    vendor.status = None
    assert api.refused("admin", "POST", f"{path}?anyway=false", NEW) == KEPT
    assert api.faults("admin", "POST", f"{path}?anyway=maybe", NEW) == {"anyway"}
    assert opened(api) == OLD
    assert api.send("admin", "POST", f"{path}?anyway=true", NEW).json()["validated"] is False
    assert opened(api) == NEW
    assert api.events() == ["credential.created", "credential.replaced"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_page_offers_another_try_and_its_use_anyway(api: Api, setting: Setting, vendor: Vendor, level: str) -> None:
    start(api, setting, level)
    browser, path = api.cast.client("admin"), page_path(api, setting, level)
    vendor.status = None
    shown = browser.post(path, NEW)
    assert shown.status_code == 409
    page = text(shown)
    assert "The vendor didn’t respond in time." in page
    assert "Try again" in page
    assert 'name="anyway" value="1"' in page
    assert NEW["apiKey"] not in page
    assert opened(api) == OLD
    vendor.status = 401
    refused = browser.post(path, {**NEW, "anyway": "1"})
    assert refused.status_code == 422
    assert "Fake rejected these credentials (401). Nothing was saved." in text(refused)
    assert NEW["apiKey"] not in text(refused)
    assert opened(api) == OLD
    vendor.status = None
    assert browser.post(path, {**NEW, "anyway": "1"}).status_code == 302
    assert opened(api) == NEW
    assert not any(NEW["apiKey"] in str(row.__dict__) for row in AdminAuditEntry.objects.all())


@pytest.mark.parametrize("level", LEVELS)
def test_the_page_replaces_with_what_the_vendor_accepts(api: Api, setting: Setting, level: str) -> None:
    start(api, setting, level)
    assert api.cast.client("admin").post(page_path(api, setting, level), NEW).status_code == 302
    assert opened(api) == NEW


@pytest.mark.parametrize("level", LEVELS)
def test_an_outsider_overrides_nothing(api: Api, setting: Setting, vendor: Vendor, level: str) -> None:
    start(api, setting, level)
    vendor.status, vendor.asked = None, 0
    for who, status in (("member", 403), ("other_owner", 404), ("nobody", 401)):
        assert api.refused(who, "POST", f"{api_path(setting, level)}?anyway=true", NEW)[0] == status
    for who, status in (("member", 403), ("other_owner", 404), ("nobody", 302)):
        answer = api.cast.client(who).post(page_path(api, setting, level), {**NEW, "anyway": "1"})
        assert answer.status_code == status
    assert vendor.asked == 0
    assert opened(api) == OLD


def test_a_first_credential_is_stored_without_an_answer(api: Api, setting: Setting, vendor: Vendor) -> None:
    vendor.status = None
    assert api.send("admin", "POST", api_path(setting, "organization"), NEW).status_code == 201
    row = Credential.objects.get()
    assert (row.check_verdict, row.check_detail, row.validated_at) == (
        "unconfirmed",
        "The vendor didn’t respond in time.",
        None,
    )


class TestNamedKey:
    @pytest.fixture
    def path(self, api: Api, setting: Setting) -> str:
        keys = "/orgs/{org}/credentials/fake/keys"
        made = api.send("admin", "POST", keys, {"name": "EU", "fields": OLD})
        return f"{keys}/{made.json()['id']}"

    def test_accepted_fields_take_its_place(self, api: Api, path: str) -> None:
        before = Credential.objects.get()
        answer = api.send("admin", "POST", path, NEW)
        assert answer.status_code == 200
        assert answer.json() == {"id": str(before.id), "vendor": "fake", "validated": True}
        assert opened(api) == NEW
        assert api.events() == ["credential_key.created", "credential_key.replaced"]

    @pytest.mark.parametrize(("status", "refusal"), [(401, (422, "credential_rejected")), (None, KEPT)])
    def test_without_the_vendors_word_the_old_ones_stay(
        self, api: Api, vendor: Vendor, path: str, status: int | None, refusal: tuple[int, str]
    ) -> None:
        vendor.status = status
        assert api.refused("admin", "POST", path, NEW) == refusal
        assert opened(api) == OLD
        if status is None:
            assert api.send("admin", "POST", f"{path}?anyway=true", NEW).json()["validated"] is False
            assert opened(api) == NEW

    def test_others_replace_nothing(self, api: Api, vendor: Vendor, path: str) -> None:
        vendor.asked = 0
        for who, status in (("member", 403), ("other_owner", 404), ("nobody", 401)):
            assert api.refused(who, "POST", path, NEW)[0] == status
        foreign = path.replace("{org}", str(api.cast.other_org.id))
        assert api.refused("other_owner", "POST", foreign, NEW) == (404, "not_found")
        assert vendor.asked == 0
        assert opened(api) == OLD
