"""People of the demo provider: silent sign-ins, refresh tokens, and removals that outlive a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demo.identity_grants import InvalidGrantError, Person
from demo.identity_people import PEOPLE_FILE, People
from demo.listening import StartError
from tests.unit.demo.identity_flow import CLIENT_FORM, CLIENT_ID, ISSUER, Flow, ManualClock, signing_key

ALICE = "alice@example.com"
OFFLINE = "openid email profile offline_access"


@pytest.fixture
def flow() -> Flow:
    return Flow()


def change(flow: Flow, action: str, **headers: str) -> Any:
    return flow.http.post("/people", data={"sub": ALICE, "action": action}, headers=headers)


def refresh(flow: Flow, token: str) -> Any:
    form = {"grant_type": "refresh_token", "refresh_token": token, **CLIENT_FORM}
    return flow.http.post("/oauth2/token", data=form)


def test_a_refresh_token_is_given_when_it_was_asked_for(flow: Flow) -> None:
    assert "refresh_token" not in flow.exchange(flow.sign_in()).json()
    token = flow.exchange(flow.sign_in(scope=OFFLINE)).json()["refresh_token"]
    flow.clock.now += 90 * 24 * 3600
    answer = refresh(flow, token)
    assert answer.status_code == 200
    access = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    assert flow.http.get("/userinfo", headers=access).json()["sub"] == ALICE
    assert refresh(flow, "forged").json()["error"] == "invalid_grant"
    assert refresh(flow, flow.exchange(flow.sign_in()).json()["id_token"]).json()["error"] == "invalid_grant"


def test_a_removed_person_has_nothing_left(flow: Flow) -> None:
    given = flow.exchange(flow.sign_in(scope=OFFLINE)).json()
    assert change(flow, "remove").status_code == 200
    assert refresh(flow, given["refresh_token"]).json()["error"] == "invalid_grant"
    access = {"Authorization": f"Bearer {given['access_token']}"}
    assert flow.http.get("/userinfo", headers=access).status_code == 401
    page = flow.http.post("/oauth2/authorize", params=flow.query(), data={"sub": ALICE})
    assert (page.status_code, "was removed" in page.text) == (400, True)
    assert flow.sign_in("bob@example.com")
    change(flow, "restore")
    assert refresh(flow, given["refresh_token"]).json()["error"] == "invalid_grant", "what was given before stays ended"
    flow.clock.now += 1
    again = flow.exchange(flow.sign_in(scope=OFFLINE)).json()["refresh_token"]
    assert refresh(flow, again).status_code == 200


def test_prompt_none_answers_whoever_is_signed_in(flow: Flow) -> None:
    silent = flow.query(prompt="none")
    assert flow.answer(flow.http.get("/oauth2/authorize", params=silent))["error"] == "login_required"
    flow.sign_in()
    code = flow.answer(flow.http.get("/oauth2/authorize", params=silent))["code"]
    assert flow.exchange(code).status_code == 200
    both = flow.http.get("/oauth2/authorize", params=flow.query(prompt="none login"))
    assert flow.answer(both)["error"] == "invalid_request"
    change(flow, "remove")
    assert flow.answer(flow.http.get("/oauth2/authorize", params=silent))["error"] == "login_required"
    change(flow, "restore")
    flow.http.get("/oauth2/end_session")
    assert flow.answer(flow.http.get("/oauth2/authorize", params=silent))["error"] == "login_required"


def test_people_are_changed_by_the_page_s_own_form(flow: Flow) -> None:
    assert "<script" not in flow.http.get("/people").text
    assert change(flow, "remove", **{"Sec-Fetch-Site": "cross-site"}).status_code == 400
    assert change(flow, "promote").status_code == 400
    assert flow.sign_in()


def test_a_removal_outlives_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()

    def started() -> People:
        return People(signing_key(), ISSUER, clock, tmp_path)

    people = started()
    tokens = {name: people.refresh_token(Person(f"{name}@e.example", name), CLIENT_ID, "openid") for name in "ab"}
    people.remove("a@e.example")
    assert started().is_removed("a@e.example")
    with pytest.raises(InvalidGrantError):
        started().refreshed(tokens["a"], CLIENT_ID)
    assert started().refreshed(tokens["b"], CLIENT_ID)[0].email == "b@e.example"
    with pytest.raises(InvalidGrantError, match="another client"):
        started().refreshed(tokens["b"], "other")
    assert (tmp_path / PEOPLE_FILE).stat().st_mode & 0o077 == 0
    (tmp_path / PEOPLE_FILE).write_text("[]")
    with pytest.raises(StartError):
        started()
