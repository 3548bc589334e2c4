"""The walk through a sign-in that other tests rely on."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

import httpx
import pytest

from tests.vendors.browser import SignInError, walk_sign_in

GATEWAY, PROVIDER = "http://gateway.example", "http://provider.example"
Answer = Callable[[httpx.Request], httpx.Response]


def redirect(location: str, **headers: str) -> httpx.Response:
    return httpx.Response(302, headers={"Location": location, **headers})


def provider_form(request: httpx.Request) -> httpx.Response:
    if request.method == "GET":
        return httpx.Response(200, text="<form>")
    form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
    assert request.url.params["state"] == "s"
    return redirect(f"{GATEWAY}/oidc/callback/?who={form.get('sub', form.get('action'))}")


def gateway(request: httpx.Request) -> httpx.Response:
    match request.url.path:
        case "/oidc/authenticate/":
            return redirect(f"{PROVIDER}/oauth2/authorize?state=s", **{"Set-Cookie": "flow=1; Path=/"})
        case "/oidc/callback/":
            assert request.headers["cookie"] == "flow=1"
            return redirect("/home", **{"Set-Cookie": f"session={request.url.params['who']}; Path=/"})
        case _:
            return httpx.Response(200, text=request.headers.get("cookie", ""))


def browser(provider: Answer = provider_form, gateway: Answer = gateway) -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        return (gateway if request.url.host == "gateway.example" else provider)(request)

    return httpx.Client(transport=httpx.MockTransport(answer), base_url=GATEWAY)


def test_walk_ends_at_the_gateway_signed_in() -> None:
    with browser() as client:
        response = walk_sign_in(client, "/oidc/authenticate/?next=/home", "alice@example.com")
        assert (response.status_code, response.url.path) == (200, "/home")
        assert client.cookies["session"] == "alice@example.com"


def test_walk_can_refuse_to_sign_in() -> None:
    with browser() as client:
        walk_sign_in(client, f"{GATEWAY}/oidc/authenticate/", "alice@example.com", deny=True)
        assert client.cookies["session"] == "deny"


def test_walk_returns_an_answer_that_needs_no_sign_in() -> None:
    with browser() as client:
        assert walk_sign_in(client, "/anything", "alice@example.com").url.path == "/anything"


@pytest.mark.parametrize("status", [400, 200])
def test_refusal_of_the_provider_is_an_error_without_the_query(status: int) -> None:
    def refusing(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200 if request.method == "GET" else status, text="<form>")

    with browser(provider=refusing) as client, pytest.raises(SignInError) as refusal:
        walk_sign_in(client, "/oidc/authenticate/", "not an address")
    assert str(refusal.value) == f"{status} from {PROVIDER}/oauth2/authorize"


def test_endless_redirects_are_an_error() -> None:
    with browser(gateway=lambda request: redirect("/again?code=x")) as client, pytest.raises(SignInError) as refusal:
        walk_sign_in(client, "/oidc/authenticate/", "alice@example.com")
    assert str(refusal.value) == f"more than 12 steps, the last at {GATEWAY}/again"
