"""The questions that a vendor may ask an organization's callers: API, page, log. docs/decisions/0118"""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from credentials.models import VendorQuestionRules
from gateway.coordination import epochs
from tests.factories.api import Api
from tests.factories.tenant import load_vendor
from tests.factories.vendor_oauth import load_oauth_vendor

RULES = "/orgs/{org}/vendor-questions/fake"
ALL = {"elicitation": True, "sampling": True, "roots": True}
FIRST = {"vendor": "fake", "elicitation": True, "sampling": False, "roots": False}


@pytest.fixture(autouse=True)
def _vendor(api: Api) -> None:
    load_vendor("http://127.0.0.1:9/mcp")


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404), ("nobody", 401)]
)
def test_admins_change_what_a_vendor_may_ask(api: Api, who: str, status: int) -> None:
    assert api.send(who, "GET", RULES).status_code == status
    answer = api.send(who, "PUT", RULES, ALL)
    assert answer.status_code == status
    assert VendorQuestionRules.objects.count() == (1 if status == 200 else 0)
    if status == 200:
        assert answer.json() == {"vendor": "fake", **ALL}


def test_an_organization_that_has_not_chosen_allows_forms_alone(api: Api) -> None:
    assert api.send("admin", "GET", RULES).json() == FIRST
    assert not VendorQuestionRules.objects.exists()


def test_each_organization_has_its_own(api: Api) -> None:
    api.send("admin", "PUT", RULES, ALL)
    found = api.cast.client("other_owner").get(f"/api/orgs/{api.cast.other_org.id}/vendor-questions/fake")
    assert found.json() == FIRST


def test_a_change_is_in_the_log_and_counts_for_the_next_call(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    bumped: list[str] = []
    monkeypatch.setattr(epochs, "bump_on_commit", bumped.append)
    for _ in range(2):
        assert api.send("admin", "PUT", RULES, ALL).status_code == 200
    row = AdminAuditEntry.objects.get(event_type="vendor.question_rules_changed")
    assert row.metadata == {"vendor": "fake", **ALL}
    assert row.target_id == "fake"
    assert bumped == [epochs.organization(api.cast.org.id)], "the second one changed nothing"


def test_faults_are_named(api: Api) -> None:
    assert api.faults("admin", "PUT", RULES, {"elicitation": True}) == {"sampling", "roots"}
    assert api.send("admin", "PUT", RULES, {**ALL, "roots": "sometimes"}).status_code == 400
    assert api.send("admin", "PUT", RULES.replace("fake", "nothing"), ALL).status_code == 404
    assert not VendorQuestionRules.objects.exists()


@pytest.mark.parametrize("slug", ["fake", "signin"])
def test_the_settings_page_has_a_form_of_its_own(api: Api, slug: str) -> None:
    if slug == "signin":
        load_oauth_vendor("http://127.0.0.1:9/mcp")
    page = f"/orgs/{api.cast.org.id}/vendors/{slug}/settings"
    text = api.cast.client("admin").get(page).content.decode()
    assert 'name="elicitation" id="may-elicit" checked' in text
    assert 'name="sampling" id="may-sample">' in text
    sent = {"action": "questions", "sampling": "on"}
    for who, status in (("member", 403), ("other_owner", 404), ("admin", 302)):
        assert api.cast.client(who).post(page, sent).status_code == status
        assert VendorQuestionRules.objects.exists() is (who == "admin")
    rules = VendorQuestionRules.objects.get(organization=api.cast.org)
    assert (rules.vendor, rules.allowed) == (slug, {"sampling"})
    assert 'name="sampling" id="may-sample" checked' in api.cast.client("admin").get(page).content.decode()
