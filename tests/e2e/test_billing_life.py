"""The whole life of paid plans at two web servers that share a database, with the provider as a process beside them.

After every step both servers are asked for a route that needs a plan and one that does not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import OPERATION_DEADLINE_S
from tests.e2e.paid_plans import SECRETS, Stage, Tenant, paid_plans
from tests.fakes.payment_provider.billing import ASKING_CARD, FAILING_LATER_CARD, GOOD_CARD, REFUSED_CARD
from tests.fakes.payment_provider.running import PRICE_ID, SECRET_KEY
from tests.vendors.processes import ROOT

pytest_plugins = ("tests.e2e.fixtures",)

DAY_S = 86_400
# A subscription that began so long ago was renewed two days ago, within the grace period, or nine days ago.
RENEWED_LATELY_S, RENEWED_LONG_AGO_S = -33 * DAY_S, -40 * DAY_S
PERIOD_DAYS = 32  # the longest month and a day


@pytest.fixture(scope="module")
def _running(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with paid_plans(template, tmp_path_factory.mktemp("billing") / "var") as running:
        yield running


@pytest.fixture
def stage(_running: Stage) -> Stage:
    """No test finds the plans of another one."""
    _running.begin_again()
    return _running


@pytest.fixture
def tenant(stage: Stage) -> Tenant:
    return stage.new_tenant()


@pytest.fixture
def bystander(stage: Stage) -> Iterator[Tenant]:
    """Another organization, which pays and is not touched by any step of the test."""
    other = stage.new_tenant()
    other.subscribe()
    stage.settle()
    assert other.plan() == "active"
    yield other
    assert other.plan() == "active"


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def fail_payments(tenant: Tenant, days: float = PERIOD_DAYS) -> None:
    """The card of the organization is worth nothing any more, and so much time passes."""
    tenant.stage.provider.control("card", customer=tenant.customer, card=FAILING_LATER_CARD)
    tenant.stage.provider.advance(days=days)
    tenant.stage.settle()


def reconcile(stage: Stage, *arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    done = stage.operator.run("manage", arguments=["billing_reconcile", *arguments])
    return done["code"], done["output"]


def reconcile_by_hand(stage: Stage, *arguments: str) -> tuple[int, str]:
    """The same, as an operator types it."""
    done = subprocess.run(
        [sys.executable, "manage.py", "billing_reconcile", *arguments],
        cwd=ROOT,
        env=stage.deployment.environment,
        capture_output=True,
        text=True,
        timeout=OPERATION_DEADLINE_S,
    )
    return done.returncode, done.stdout


# --- checkout ---------------------------------------------------------------------------------------------------------


def test_checkout_activates_the_plan_when_the_provider_says_so(stage: Stage, tenant: Tenant, bystander: Tenant) -> None:
    assert tenant.plan() == "lapsed"
    url = tenant.checkout_url(0)
    assert tenant.checkout_url(1) == url, "an open checkout is used again, at the other server too"
    assert stage.provider.pay(url, REFUSED_CARD).status_code == 402
    assert tenant.plan() == "lapsed"
    stage.provider.control("delivery", hold=True)
    paid = stage.provider.pay(url)
    assert paid.headers["Location"] == f"{stage.deployment.origin}/orgs/{tenant.org_id}/billing?checkout=done"
    assert tenant.plan() == "lapsed", "the browser's return proves nothing"
    assert refused(tenant.checkout(1)) == (409, "already_subscribed"), "and a second subscription is not sold meanwhile"
    stage.provider.control("delivery", hold=False)
    stage.provider.control("release")
    stage.settle()
    assert tenant.plan() == "active"
    assert refused(tenant.checkout()) == (409, "already_subscribed")
    assert bystander.customer != tenant.customer


@pytest.mark.parametrize("number", [0, 1])
def test_events_that_one_server_gets_count_at_both(stage: Stage, tenant: Tenant, number: int) -> None:
    stage.send_events_to(number)
    tenant.subscribe()
    stage.settle()
    assert tenant.plan() == "active"
    stage.provider.act(tenant.portal_url(), "cancel_now")
    stage.settle()
    assert tenant.plan() == "lapsed"


def test_owners_who_ask_at_once_get_one_session(stage: Stage, tenant: Tenant) -> None:
    with ThreadPoolExecutor(4) as pool:
        urls = set(pool.map(lambda number: tenant.checkout_url(number % 2), range(4)))
    assert len(urls) == 1
    assert tenant.customer
    assert len(stage.stripe("GET", "checkout/sessions", status="open")["data"]) == 1


def test_a_bank_that_asks_first(stage: Stage, tenant: Tenant) -> None:
    url = tenant.checkout_url()
    stage.provider.pay(url, ASKING_CARD)
    stage.settle()
    assert (tenant.plan(), tenant.row("status")) == ("lapsed", ("incomplete",))
    stage.provider.act(url, "agree")
    stage.settle()
    assert tenant.plan() == "active"


def test_a_checkout_that_expires_is_followed_by_another(stage: Stage, tenant: Tenant) -> None:
    first = tenant.checkout_url()
    stage.provider.advance(days=1.1)
    second = tenant.checkout_url(1)
    assert second != first
    assert stage.provider.pay(second).status_code == 303
    stage.settle()
    assert tenant.plan() == "active"


@pytest.mark.parametrize(
    ("kind", "works"),
    [(kind, False) for kind in ("status", "garbage", "redirect", "cut", "huge", "list", "null")] + [("cut", True)],
)
def test_a_provider_in_trouble(stage: Stage, tenant: Tenant, kind: str, works: bool) -> None:
    """Every request of a checkout meets the trouble once, and what it did all the same is done once."""
    for web, path in enumerate(("/v1/customers", "/v1/checkout/sessions")):
        stage.provider.control("fault", kind=kind, path=path, method="POST", works=works)
        assert refused(tenant.checkout(web)) == (502, "billing_provider_error")
    assert stage.provider.pay(tenant.checkout_url()).status_code == 303
    stage.settle()
    assert tenant.plan() == "active"
    assert tenant.customer, "there is exactly one"
    assert all(each["path"] != "/where-a-redirect-led" for each in stage.provider.control("requests")["requests"])


# --- coupons ----------------------------------------------------------------------------------------------------------


def test_coupons(stage: Stage, tenant: Tenant) -> None:
    stage.stripe("POST", "coupons", id="PARTNER", percent_off="50", duration="forever")
    stage.stripe("POST", "coupons", id="GONE", percent_off="50", redeem_by="1")
    code = {"promotion[type]": "coupon", "promotion[coupon]": "PARTNER", "code": "Welcome"}
    stage.stripe("POST", "promotion_codes", **code)
    for unknown in ("NONE", "GONE", "partner", "../customers", "..", ".", "PARTNER?x"):
        assert refused(tenant.checkout(coupon=unknown)) == (422, "invalid_coupon"), unknown
    urls = [tenant.checkout_url(coupon=coupon) for coupon in ("", "PARTNER", "welcome")]
    assert len(set(urls)) == 3
    sessions = [stage.stripe("GET", f"checkout/sessions/{url.rpartition('/')[2]}") for url in urls]
    assert [each["status"] for each in sessions] == ["expired", "expired", "open"], "one can be paid"
    assert (sessions[2]["amount_total"], sessions[2]["discounts"][0]["promotion_code"] is not None) == (4_950, True)
    assert stage.provider.pay(urls[2]).status_code == 303
    stage.settle()
    assert tenant.plan() == "active"


def test_a_coupon_for_everything(stage: Stage, tenant: Tenant) -> None:
    stage.stripe("POST", "coupons", id="FREE", percent_off="100", duration="forever")
    tenant.subscribe(coupon="FREE")
    stage.settle()
    assert tenant.plan() == "active"


# --- payments that fail -----------------------------------------------------------------------------------------------


def test_a_failed_renewal_has_its_days_of_grace(stage: Stage, tenant: Tenant, bystander: Tenant) -> None:
    stage.provider.control("clock", offset_s=RENEWED_LATELY_S)
    subscription = tenant.subscribe()
    stage.settle()
    fail_payments(tenant)
    assert stage.stripe("GET", f"subscriptions/{subscription}")["status"] == "past_due"
    assert (tenant.plan(), tenant.row("status")) == ("active", ("past_due",))
    assert refused(tenant.checkout()) == (409, "already_subscribed"), "the debt is paid on the portal"
    stage.provider.act(tenant.portal_url(), "card", card=GOOD_CARD)
    stage.settle()
    assert (tenant.plan(), tenant.row("status", "past_due_since")) == ("active", ("active", None))


def test_grace_that_has_run_out(stage: Stage, tenant: Tenant) -> None:
    stage.provider.control("clock", offset_s=RENEWED_LONG_AGO_S)
    tenant.subscribe()
    stage.settle()
    assert tenant.plan() == "active"
    fail_payments(tenant)
    assert (tenant.plan(), tenant.row("status")) == ("lapsed", ("past_due",))
    stage.operator.run("run_task", name="billing.record_lapses")
    assert tenant.plan() == "lapsed"
    stage.provider.act(tenant.portal_url(1), "card", card=GOOD_CARD)
    stage.settle()
    assert tenant.plan() == "active"


@pytest.mark.parametrize("policy", ["unpaid", "cancel"])
def test_payments_that_fail_for_good(stage: Stage, tenant: Tenant, policy: str) -> None:
    stage.provider.control("policy", after_retries=policy)
    tenant.subscribe()
    stage.settle()
    fail_payments(tenant, PERIOD_DAYS + 16)
    assert (tenant.plan(), tenant.row("status")) == ("lapsed", ("canceled" if policy == "cancel" else "unpaid",))
    if policy == "cancel":
        tenant.subscribe()
    else:
        assert refused(tenant.checkout()) == (409, "already_subscribed"), "the debt is paid on the portal"
        stage.provider.act(tenant.portal_url(), "card", card=GOOD_CARD)
    stage.settle()
    assert tenant.plan() == "active"


# --- the portal -------------------------------------------------------------------------------------------------------


def test_there_is_no_portal_without_a_customer(stage: Stage, tenant: Tenant) -> None:
    answer = tenant.ask(0, "POST", "billing/portal", {"org_id": tenant.org_id})
    assert refused(answer) == (409, "no_billing_account")


@pytest.mark.parametrize("mode", ["flexible", "classic"])
def test_it_ends_with_its_period(stage: Stage, tenant: Tenant, bystander: Tenant, mode: str) -> None:
    stage.provider.control("policy", billing_mode=mode)
    tenant.subscribe()
    stage.settle()
    portal = tenant.portal_url(1)
    for action, is_ending in (("cancel_at_period_end", 1), ("renew", 0), ("cancel_at_period_end", 1)):
        stage.provider.act(portal, action)
        stage.settle()
        assert (tenant.plan(), tenant.row("cancel_at_period_end")) == ("active", (is_ending,))
    stage.provider.advance(days=PERIOD_DAYS)
    stage.settle()
    assert (tenant.plan(), tenant.row("status")) == ("lapsed", ("canceled",))
    tenant.subscribe()
    stage.settle()
    assert (tenant.plan(), tenant.row("cancel_at_period_end")) == ("active", (0,))


def test_it_ends_at_once(stage: Stage, tenant: Tenant) -> None:
    tenant.subscribe()
    stage.settle()
    stage.provider.act(tenant.portal_url(), "cancel_now")
    stage.settle()
    assert tenant.plan() == "lapsed"


# --- deletion of the organization -------------------------------------------------------------------------------------


def test_a_deleted_organization_is_not_charged_any_more(stage: Stage, tenant: Tenant, bystander: Tenant) -> None:
    subscription = tenant.subscribe()
    stage.settle()
    assert tenant.ask(1, "DELETE", f"orgs/{tenant.org_id}").status_code == 204
    assert stage.stripe("GET", f"subscriptions/{subscription}")["status"] == "active", "it is asked by the worker"
    assert stage.operator.run("run_task", name="billing.cancel_subscriptions") == 1
    stage.settle()
    assert stage.stripe("GET", f"subscriptions/{subscription}")["status"] == "canceled"
    stage.provider.control("resend")
    stage.settle()
    for web in range(2):
        assert tenant.ask(web, "GET", f"orgs/{tenant.org_id}").status_code == 404
    assert stage.operator.run("run_task", name="billing.cancel_subscriptions") == 0


def test_a_checkout_that_outlives_its_organization(stage: Stage, tenant: Tenant) -> None:
    """Paid after the deletion and before the worker closed it."""
    url = tenant.checkout_url()
    assert tenant.ask(0, "DELETE", f"orgs/{tenant.org_id}").status_code == 204
    assert stage.provider.pay(url).status_code == 303
    stage.settle()
    stage.operator.run("run_task", name="billing.cancel_subscriptions")
    stage.settle()
    assert stage.stripe("GET", "subscriptions")["data"] == []


def test_the_provider_is_away_when_an_organization_is_deleted(stage: Stage, tenant: Tenant) -> None:
    tenant.subscribe()
    stage.settle()
    assert tenant.ask(0, "DELETE", f"orgs/{tenant.org_id}").status_code == 204
    stage.provider.control("fault", kind="status", times=100)
    assert stage.operator.run("run_task", name="billing.cancel_subscriptions") == 0
    stage.provider.control("heal")
    waits = stage.deployment.database.select(
        "SELECT attempts, last_error FROM billing_providercancellation WHERE done_at IS NULL"
    )
    assert [attempts for attempts, _ in waits] == [1]
    assert stage.operator.run("run_task", name="billing.cancel_subscriptions") == 0, "its next attempt is a minute away"
    assert len(stage.stripe("GET", "subscriptions")["data"]) == 1


# --- not by our own checkout ------------------------------------------------------------------------------------------


def test_a_customer_that_was_deleted_at_the_provider(stage: Stage, tenant: Tenant) -> None:
    tenant.subscribe()
    stage.settle()
    stage.stripe("DELETE", f"customers/{tenant.customer}")
    stage.settle()
    assert (tenant.plan(), tenant.row("status")) == ("lapsed", ("canceled",))
    tenant.subscribe()
    stage.settle()
    assert tenant.plan() == "active"
    assert reconcile(stage)[0] == 0


def test_a_second_subscription_of_the_same_customer(stage: Stage, tenant: Tenant) -> None:
    """Support staff made it on the provider's own pages."""
    first = tenant.subscribe()
    line = {"line_items[0][price]": PRICE_ID, "line_items[0][quantity]": "1"}
    page = {"mode": "subscription", "customer": tenant.customer, "success_url": "http://127.0.0.1:1/", **line}
    second = stage.stripe("POST", "checkout/sessions", **page)
    assert stage.provider.pay(second["url"]).status_code == 303
    stage.settle()
    code, said = reconcile(stage)
    assert (code, "2 subscriptions" in said, tenant.plan()) == (1, True, "active")
    stage.stripe("DELETE", f"subscriptions/{first}")
    stage.settle()
    assert (tenant.plan(), reconcile(stage)[0]) == ("active", 0)
    stage.provider.act(tenant.portal_url(), "cancel_now")
    stage.settle()
    assert tenant.plan() == "lapsed"


# --- disorder ---------------------------------------------------------------------------------------------------------


def live(tenant: Tenant) -> str:
    """Paid, owed, paid again, about to end and renewed: the identifier of the subscription, which is active."""
    stage = tenant.stage
    subscription = tenant.subscribe()
    stage.provider.control("card", customer=tenant.customer, card=FAILING_LATER_CARD)
    stage.provider.advance(days=PERIOD_DAYS)
    portal = tenant.portal_url()
    stage.provider.act(portal, "card", card=GOOD_CARD)
    stage.provider.act(portal, "cancel_at_period_end")
    stage.provider.act(portal, "renew")
    return subscription


@pytest.mark.parametrize("ends", [False, True], ids=["lives", "ends"])
@pytest.mark.parametrize(
    ("order", "seed"), [("created", 0), ("reversed", 0), ("shuffled", 1), ("shuffled", 2), ("shuffled", 3)]
)
def test_events_in_any_order_and_twice(
    stage: Stage, tenant: Tenant, bystander: Tenant, order: str, seed: int, ends: bool
) -> None:
    stage.provider.control("clock", offset_s=RENEWED_LONG_AGO_S)
    stage.provider.control("policy", begins="incomplete")
    stage.provider.control("delivery", hold=True, copies=2, parallel=8, seed=seed)
    subscription = live(tenant)
    if ends:
        stage.provider.act(tenant.portal_url(), "cancel_now")
    assert tenant.plan() == "lapsed", "nothing has arrived"
    stage.provider.control("release", order=order)
    stage.settle()
    expected = ("lapsed", "canceled") if ends else ("active", "active")
    assert (tenant.plan(), *tenant.row("status", "cancel_at_period_end")) == (*expected, 0)
    assert tenant.row("subscription_id") == (subscription,)
    before = tenant.events()
    stage.provider.control("resend")
    stage.settle()
    assert (tenant.plan(), tenant.events()) == (expected[0], before), "a replay changes nothing"


def test_signatures_that_are_forged_or_old(stage: Stage, tenant: Tenant) -> None:
    stage.provider.control("delivery", hold=True, retry_delays_s=[])
    tenant.subscribe()
    for wrong in ({"secrets": ["whsec_forged"]}, {"signed_ago_s": 400}, {"signed_ago_s": -400}):
        stage.provider.control("resend", **wrong)
    statuses = {each["status"] for each in stage.provider.settle()["deliveries"]}
    assert (statuses, tenant.plan()) == ({400}, "lapsed")


@pytest.mark.parametrize("first_is_lost", [False, True])
@pytest.mark.parametrize("ends", [False, True], ids=["lives", "ends"])
def test_half_of_the_events_are_lost(
    stage: Stage, tenant: Tenant, bystander: Tenant, first_is_lost: bool, ends: bool
) -> None:
    stage.provider.control("clock", offset_s=RENEWED_LONG_AGO_S)
    stage.provider.control("policy", begins="incomplete")
    stage.provider.control("delivery", drop_every=2)
    if first_is_lost:
        stage.stripe("POST", "customers", email="counts@example.com")
    subscription = live(tenant)
    if ends:
        stage.provider.act(tenant.portal_url(), "cancel_now")
    stage.settle()
    stage.provider.control("delivery", drop_every=0)
    before = tenant.plan(), tenant.events()
    dry_code, said = reconcile(stage, "--dry-run")
    assert (tenant.plan(), tenant.events()) == before
    assert (dry_code == 1) == (tenant.org_id in said)
    assert bystander.org_id not in said
    code, said = reconcile_by_hand(stage)
    assert code == 0, said
    assert reconcile(stage, "--dry-run")[0] == 0, "all is mended"
    expected = ("lapsed", "canceled") if ends else ("active", "active")
    assert (tenant.plan(), *tenant.row("status")) == expected
    _goes_on(tenant, subscription, is_over=ends)


def _goes_on(tenant: Tenant, subscription: str, *, is_over: bool) -> None:
    """Events after a reconciliation count again."""
    if is_over:
        tenant.subscribe()
        tenant.stage.settle()
        assert tenant.plan() == "active"
        return
    tenant.stage.provider.act(tenant.portal_url(), "cancel_now")
    tenant.stage.settle()
    assert (tenant.plan(), *tenant.row("status", "subscription_id")) == ("lapsed", "canceled", subscription)


def test_no_event_arrives_at_all(stage: Stage, tenant: Tenant) -> None:
    stage.provider.control("delivery", drop_every=1)
    subscription = tenant.subscribe()
    stage.settle()
    assert tenant.plan() == "lapsed"
    assert refused(tenant.checkout()) == (409, "already_subscribed"), "a second subscription is not sold"
    code, said = reconcile(stage, "--dry-run")
    assert (code, subscription in said, tenant.plan()) == (1, True, "lapsed")
    assert reconcile(stage)[0] == 0
    assert tenant.plan() == "active"


def test_customers_that_the_provider_does_not_know(stage: Stage, tenant: Tenant) -> None:
    """They are reported, and the others are mended all the same."""
    lost = [stage.new_tenant() for _ in range(6)]
    for each in lost:
        each.subscribe()
    stage.settle()
    stage.forget_customers()
    stage.provider.control("delivery", drop_every=1)
    tenant.subscribe()
    code, said = reconcile(stage)
    assert (code, tenant.plan()) == (1, "active"), said
    assert all(each.org_id in said for each in lost)
    assert {each.plan() for each in lost} == {"active"}, "an operator decides"


def test_the_provider_is_away_at_a_reconciliation(stage: Stage, tenant: Tenant) -> None:
    stage.provider.control("delivery", drop_every=1)
    tenant.subscribe()
    stage.provider.control("fault", kind="status", times=100)
    assert reconcile(stage)[0] == 2
    stage.provider.control("heal")
    assert tenant.plan() == "lapsed"
    assert reconcile(stage)[0] == 0
    assert tenant.plan() == "active"


def test_secrets_stay_in_the_environment(stage: Stage, tenant: Tenant) -> None:
    """No log and no row has a key or a webhook secret, also after a checkout that failed."""
    stage.provider.control("fault", kind="status", status=401)
    assert refused(tenant.checkout()) == (502, "billing_provider_error")
    tenant.subscribe()
    stage.settle()
    assert reconcile(stage)[0] == 0
    logs = "".join(path.read_text(errors="replace") for path in stage.deployment.log_paths)
    rows = repr(stage.deployment.database.dump())
    assert tenant.customer in rows
    for secret in (SECRET_KEY, *SECRETS):
        assert secret not in logs
        assert secret not in rows
