"""The hosted pages: checkout, where a form pays with a card number, and the portal, where a subscription is managed."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tests.fakes.payment_provider.billing import ASKING_CARD, CARDS, ENDED, GOOD_CARD
from tests.fakes.payment_provider.errors import Refusal
from tests.fakes.payment_provider.form import Fields, parsed
from tests.fakes.payment_provider.routing import Api
from tests.fakes.payment_provider.store import Json

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">
<title>{title}</title>
<style>body{{font:1rem/1.5 system-ui;max-width:34rem;margin:3rem auto;padding:0 1rem}}button{{margin:.25rem 0}}</style>
</head><body><h1>{title}</h1><p><em>Demonstration: no money moves here.</em></p>{body}</body></html>"""
_CARD = f"""<label>Card number <input name="card" value="{GOOD_CARD}" autocomplete="off"></label>"""


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return HTMLResponse(_PAGE.format(title=escape(title), body=body), status, headers=headers)


def _button(action: str, text: str, inside: str = "") -> str:
    return f'<form method="post">{inside}<button name="action" value="{action}">{text}</button></form>'


def _link(url: str | None, text: str) -> str:
    return f'<p><a href="{escape(url)}">{text}</a></p>' if url else ""


async def checkout_page(request: Request, api: Api) -> Response:
    """POST with `card` pays; `action` agree or refuse answers for a card whose owner is asked."""
    session = api.store.tables.get("checkout.session", {}).get(request.path_params["id"])
    if session is None:
        return _page("Not found", "<p>There is no such checkout.</p>", 404)
    if request.method == "GET":
        return _page("Checkout", _checkout_body(session))
    fields = Fields(parsed((await request.body()).decode()))
    action, card = fields.optional("action"), fields.optional("card")
    try:
        if action in ("agree", "refuse"):
            api.checkout.answer(session, agrees=action == "agree")
        else:
            api.checkout.pay(session, card)
    except Refusal as refusal:
        return _page(
            "Checkout", f"<p role=alert>{escape(refusal.message)}</p>" + _checkout_body(session), refusal.status
        )
    if session["status"] != "complete":
        return _page("Your bank asks", _button("agree", "Agree") + _button("refuse", "Refuse"))
    return RedirectResponse(session["success_url"].replace("{CHECKOUT_SESSION_ID}", quote(session["id"])), 303)


def _checkout_body(session: Json) -> str:
    if session["status"] != "open":
        return f"<p>This checkout is {escape(session['status'])}.</p>"
    amount = f"{session['amount_total'] / 100:.2f} {session['currency'].upper()}"
    cards = f"<p>Cards: {', '.join(CARDS)}. {ASKING_CARD} asks first.</p>"
    return f"<p>{amount} now</p>{_button('pay', 'Pay', _CARD)}{cards}{_link(session['cancel_url'], 'Back')}"


async def portal_page(request: Request, api: Api) -> Response:
    """POST with `action` cancel_at_period_end, cancel_now, renew or card; `subscription` chooses one of several."""
    session = api.store.tables.get("billing_portal.session", {}).get(request.path_params["id"])
    if session is None:
        return _page("Not found", "<p>There is no such session.</p>", 404)
    own = [each for each in api.store.all("subscription") if each["customer"] == session["customer"]]
    running = [each for each in own if each["status"] not in ENDED]
    if request.method == "GET":
        return _page("Your subscriptions", _portal_body(own, session))
    fields = Fields(parsed((await request.body()).decode()))
    wanted = fields.optional("subscription")
    try:
        for subscription in running:
            if wanted in (None, subscription["id"]):
                _act(api, subscription, fields)
    except Refusal as refusal:
        return _page("Your subscriptions", f"<p role=alert>{escape(refusal.message)}</p>", refusal.status)
    return RedirectResponse(request.url.path, 303)


def _act(api: Api, subscription: Json, fields: Fields) -> None:
    action = fields.choice("action", "cancel_at_period_end", "cancel_now", "renew", "card")
    if action == "cancel_now":
        api.billing.end(subscription, "cancellation_requested")
    elif action == "card":
        _new_card(api, subscription, fields.optional("card") or GOOD_CARD)
    else:
        ends = action == "cancel_at_period_end"
        api.billing.schedule_end(subscription, at_period_end=ends, by_portal=True)


def _new_card(api: Api, subscription: Json, card: str) -> None:
    """The latest invoice is paid with it if it is open."""
    api.billing.cards[subscription["customer"]] = card
    invoice = api.store.get("invoice", subscription["latest_invoice"])
    if invoice["status"] == "open":
        api.billing.pay(invoice)


def _portal_body(own: list[Json], session: Json) -> str:
    body = "".join(_portal_entry(each) for each in own) or "<p>There is none.</p>"
    return body + _link(session["return_url"], "Return")


def _portal_entry(subscription: Json) -> str:
    ends = " and ends with its period" if subscription["cancel_at"] else ""
    text = f"<p>{subscription['id']} is {subscription['status']}{ends}.</p>"
    if subscription["status"] in ENDED:
        return text
    chosen = f'<input type="hidden" name="subscription" value="{subscription["id"]}">'
    end = (
        _button("renew", "Renew", chosen)
        if subscription["cancel_at"]
        else _button("cancel_at_period_end", "Cancel at the end of the period", chosen)
    )
    return (
        text + end + _button("cancel_now", "Cancel at once", chosen) + _button("card", "Use this card", chosen + _CARD)
    )
