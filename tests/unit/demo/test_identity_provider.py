"""The demo identity provider's endpoints: what they grant, and what they refuse and how."""

from __future__ import annotations

from urllib.parse import urlencode

import jwt
import pytest

from demo import identity_provider
from demo.identity_grants import CODE_LIFETIME_S, TOKEN_LIFETIME_S
from tests.unit.demo.identity_flow import CALLBACK, CLIENT_FORM, CLIENT_ID, CLIENT_SECRET, ISSUER, ORIGIN, Flow


@pytest.fixture
def flow() -> Flow:
    return Flow()


def test_configuration_names_only_what_is_served(flow: Flow) -> None:
    document = flow.http.get("/.well-known/openid-configuration").json()
    assert document["issuer"] == ISSUER
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint"):
        path = document[name].removeprefix(ISSUER)
        assert flow.http.get(path).status_code != 404, name


def test_form_is_accessible_and_runs_no_script(flow: Flow) -> None:
    response = flow.http.get("/oauth2/authorize", params=flow.query(login_hint='"><script>alert(1)</script>'))
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    # Without the client's origin here, browsers would drop the redirect that answers the form.
    assert f"form-action 'self' {ORIGIN}" in policy
    assert response.headers["cache-control"] == "no-store"
    assert "must not be used in production" in response.text
    assert '<label for="sub">' in response.text
    assert "<script" not in response.text
    style = flow.http.get("/identity_provider.css")
    assert (style.status_code, style.headers["content-type"].partition(";")[0]) == (200, "text/css")
    assert "prefers-color-scheme: dark" in style.text


def test_code_becomes_an_id_token_signed_by_the_published_key(flow: Flow) -> None:
    response = flow.http.post(
        "/oauth2/authorize", params=flow.query(), data={"sub": " Alice.Smith@Example.com ", "name": "Alice  Smith"}
    )
    answer = flow.answer(response)
    assert (answer["state"], answer["iss"]) == ("the-state", ISSUER)
    tokens = flow.exchange(answer["code"])
    assert tokens.status_code == 200
    assert tokens.headers["cache-control"] == "no-store"
    body = tokens.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", TOKEN_LIFETIME_S)
    key_set = jwt.PyJWKSet.from_dict(flow.http.get("/jwks").json())
    key = key_set[jwt.get_unverified_header(body["id_token"])["kid"]]
    claims = jwt.decode(
        body["id_token"],
        key.key,
        algorithms=["RS256"],
        audience=CLIENT_ID,
        issuer=ISSUER,
        options={"verify_exp": False, "verify_iat": False},
    )
    now = int(flow.clock())
    assert claims == {
        "iss": ISSUER,
        "aud": CLIENT_ID,
        "iat": now,
        "exp": now + 300,
        "auth_time": now,
        "nonce": "the-nonce",
        "sub": "alice.smith@example.com",
        "email": "alice.smith@example.com",
        "email_verified": True,
        "name": "Alice Smith",
    }


def test_id_token_has_no_nonce_when_none_was_sent(flow: Flow) -> None:
    id_token = flow.exchange(flow.sign_in(nonce=None)).json()["id_token"]
    assert "nonce" not in jwt.decode(id_token, options={"verify_signature": False})


def test_published_key_is_public(flow: Flow) -> None:
    (key,) = flow.http.get("/jwks").json()["keys"]
    assert set(key) == {"kty", "n", "e", "kid", "use", "alg"}


@pytest.mark.parametrize("email", ["", "alice", "alice@", "@example.com", "a@b", "a b@example.com", "a..b@example.com"])
def test_bad_email_shows_the_form_again(flow: Flow, email: str) -> None:
    response = flow.http.post("/oauth2/authorize", params=flow.query(), data={"sub": email})
    assert response.status_code == 400
    assert 'role="alert"' in response.text
    assert 'aria-invalid="true"' in response.text


def test_typed_text_is_shown_again_as_text(flow: Flow) -> None:
    form = {"sub": '"><b>x', "name": "<i>y"}
    page = flow.http.post("/oauth2/authorize", params=flow.query(), data=form).text
    assert "<b>x" not in page
    assert "<i>y" not in page
    assert "&lt;b&gt;x" in page


def test_denial_answers_the_client_with_its_state(flow: Flow) -> None:
    response = flow.http.post("/oauth2/authorize", params=flow.query(), data={"action": "deny"})
    assert response.status_code == 302
    answer = flow.answer(response)
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "the-state", ISSUER)
    assert "code" not in answer


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "another"},
        {"client_id": None},
        {"redirect_uri": None},
        {"redirect_uri": "http://evil.example/oidc/callback/"},
        {"redirect_uri": f"{ORIGIN}.evil.example/oidc/callback/"},
        {"redirect_uri": f"{CALLBACK}?next=/"},
        {"redirect_uri": CALLBACK.rstrip("/")},
        {"state": "x" * 3000},
    ],
)
def test_untrusted_request_is_answered_with_a_page(flow: Flow, method: str, changes: dict[str, str | None]) -> None:
    response = flow.http.request(method, "/oauth2/authorize", params=flow.query(**changes), data={"sub": "a@b.example"})
    assert response.status_code == 400
    assert "location" not in response.headers
    assert "This sign-in cannot go on" in response.text


def test_parameter_given_twice_is_answered_with_a_page(flow: Flow) -> None:
    query = urlencode([*flow.query().items(), ("state", "another")])
    response = flow.http.get(f"/oauth2/authorize?{query}")
    assert (response.status_code, "location" in response.headers) == (400, False)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
        ({"prompt": "none"}, "login_required"),
        ({"request": "eyJ"}, "request_not_supported"),
        ({"request_uri": "http://x.example/"}, "request_uri_not_supported"),
    ],
)
def test_refusal_answers_the_client(flow: Flow, method: str, changes: dict[str, str | None], error: str) -> None:
    response = flow.http.request(method, "/oauth2/authorize", params=flow.query(**changes), data={"sub": "a@b.example"})
    assert response.status_code == 302
    answer = flow.answer(response)
    assert (answer["error"], answer["state"], answer["iss"]) == (error, "the-state", ISSUER)


@pytest.mark.parametrize(("site", "status"), [("cross-site", 400), ("same-site", 400), ("same-origin", 302)])
def test_form_is_taken_from_its_own_site_only(flow: Flow, site: str, status: int) -> None:
    headers = {"Sec-Fetch-Site": site}
    form = {"sub": "a@b.example"}
    response = flow.http.post("/oauth2/authorize", params=flow.query(), data=form, headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "another-verifier-of-the-length-that-is-wanted-here"},
        {"code_verifier": None},
        {"code_verifier": "short"},
        {"redirect_uri": "http://127.0.0.1:8001/oidc/callback/"},
        {"code": "unknown"},
    ],
)
def test_wrong_exchange_is_an_invalid_grant_and_spends_the_code(flow: Flow, changes: dict[str, str | None]) -> None:
    code = flow.sign_in()
    refused = flow.exchange(code, **changes)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert refused.headers["cache-control"] == "no-store"
    # One try per code: a thief of the code gets no second guess at the verifier.
    again = flow.exchange(code)
    assert again.status_code == (200 if "code" in changes else 400)


def test_replayed_code_is_refused_and_revokes_the_first_token(flow: Flow) -> None:
    code = flow.sign_in()
    bearer = {"Authorization": f"Bearer {flow.exchange(code).json()['access_token']}"}
    assert flow.http.get("/userinfo", headers=bearer).status_code == 200
    replayed = flow.exchange(code)
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert flow.http.get("/userinfo", headers=bearer).status_code == 401


@pytest.mark.parametrize(("age_s", "status"), [(CODE_LIFETIME_S - 1, 200), (CODE_LIFETIME_S, 400)])
def test_code_expires(flow: Flow, age_s: float, status: int) -> None:
    code = flow.sign_in()
    flow.clock.now += age_s
    assert flow.exchange(code).status_code == status


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"code": None}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
    ],
)
def test_malformed_exchange_is_refused(flow: Flow, changes: dict[str, str | None], error: str) -> None:
    response = flow.exchange(flow.sign_in(), **changes)
    assert (response.status_code, response.json()["error"]) == (400, error)


@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": None}, {"client_id": "another"}]
)
def test_unproved_client_is_refused_and_keeps_the_code(flow: Flow, changes: dict[str, str | None]) -> None:
    code = flow.sign_in()
    refused = flow.exchange(code, **changes)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    # Else anybody could spend the codes of others.
    assert flow.exchange(code).status_code == 200


def test_client_may_use_basic_but_not_both_ways(flow: Flow) -> None:
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": "v" * 43}
    basic = (CLIENT_ID, CLIENT_SECRET)
    both = flow.http.post("/oauth2/token", data={**form, **CLIENT_FORM, "code": "x"}, auth=basic)
    assert (both.status_code, both.json()["error"]) == (400, "invalid_request")
    wrong = flow.http.post("/oauth2/token", data={**form, "code": "x"}, auth=(CLIENT_ID, "wrong"))
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    assert wrong.headers["www-authenticate"].startswith("Basic ")
    # The client library repeats its id in the form next to the header.
    form = {**form, "code_verifier": "a-verifier-of-the-length-that-the-standard-wants", "code": flow.sign_in()}
    proved = flow.http.post("/oauth2/token", data={**form, "client_id": CLIENT_ID}, auth=basic)
    assert proved.status_code == 200


def test_token_request_is_a_form_of_bounded_size(flow: Flow) -> None:
    as_json = flow.http.post("/oauth2/token", json={"grant_type": "authorization_code"})
    assert (as_json.status_code, as_json.json()["error"]) == (400, "invalid_request")
    padding = {f"padding_{number}": "x" * 2000 for number in range(identity_provider.MAX_FORM_BYTES // 2000 + 1)}
    big = flow.exchange(flow.sign_in(), **padding)
    assert (big.status_code, big.json()["error_description"]) == (400, "the body is too large")
    assert flow.http.get("/oauth2/token").status_code == 405


def test_userinfo_tells_who_the_bearer_is(flow: Flow) -> None:
    token = flow.exchange(flow.sign_in("bob.b-jones@example.com")).json()["access_token"]
    response = flow.http.get("/userinfo", headers={"Authorization": f"Bearer {token}"})
    assert response.json() == {
        "sub": "bob.b-jones@example.com",
        "email": "bob.b-jones@example.com",
        "email_verified": True,
        "name": "Bob B Jones",
    }
    assert flow.http.get("/userinfo").headers["www-authenticate"] == "Bearer"
    for header in ("Bearer unknown", f"Basic {token}", "Bearer"):
        assert flow.http.get("/userinfo", headers={"Authorization": header}).status_code == 401, header
    assert flow.http.get("/userinfo", params={"access_token": token}).status_code == 401
    flow.clock.now += TOKEN_LIFETIME_S
    assert flow.http.get("/userinfo", headers={"Authorization": f"Bearer {token}"}).status_code == 401


@pytest.mark.parametrize(
    ("target", "location"),
    [
        (f"{ORIGIN}/", f"{ORIGIN}/?state=s"),
        (f"{ORIGIN}/goodbye?x=1", f"{ORIGIN}/goodbye?x=1&state=s"),
        (f"{ORIGIN}.evil.example/", None),
        (f"{ORIGIN}@evil.example/", None),
        (f"{ORIGIN}\\@evil.example/", None),
        (f"{ORIGIN}/\\evil.example", None),
        (f"{ORIGIN}/a b", None),
        ("http://127.0.0.1:8001/", None),
        ("//127.0.0.1:8000/", None),
        ("javascript:alert(1)", None),
        ("/relative", None),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_sign_out_goes_back_to_the_client_only(flow: Flow, method: str, target: str, location: str | None) -> None:
    fields = {"post_logout_redirect_uri": target, "state": "s", "id_token_hint": "x"}
    is_get = method == "GET"
    response = flow.http.request(
        method, "/oauth2/end_session", params=fields if is_get else None, data=None if is_get else fields
    )
    assert response.headers.get("location") == location
    assert response.status_code == (400 if location is None else 302)


def test_sign_out_without_a_target_says_so(flow: Flow) -> None:
    response = flow.http.get("/oauth2/end_session")
    assert (response.status_code, "You are signed out" in response.text) == (200, True)


def test_provider_is_healthy(flow: Flow) -> None:
    assert flow.http.get("/healthz").json() == {"status": "ok"}
