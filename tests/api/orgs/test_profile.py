"""GET, PATCH /api/profile."""

from __future__ import annotations

import pytest

from orgs.models import User
from orgs.services.profile import update_profile
from tests.factories.api import Api


def test_the_profile_is_the_signed_in_persons(api: Api) -> None:
    user = api.cast.user("member")
    assert api.get("member", "/profile") == {
        "id": str(user.id),
        "email": "member@example.com",
        "name": "Member",
        "firstName": "",
        "lastName": "",
        "displayName": "Member",
    }
    assert api.get("stranger", "/profile")["email"] == "stranger@example.com"
    assert api.refused("nobody", "GET", "/profile") == (401, "unauthenticated")


def test_names_are_stored_trimmed_and_cleared(api: Api) -> None:
    answer = api.send("member", "PATCH", "/profile", {"firstName": " Ana ", "lastName": "Silva", "displayName": None})
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["firstName"], answer.json()["displayName"]) == ("Ana Silva", "Ana", "")
    answer = api.send("member", "PATCH", "/profile", {"firstName": "", "lastName": ""})
    assert answer.json()["name"] == "member"
    assert api.send("member", "PATCH", "/profile", {}).status_code == 200


def test_two_requests_at_once_lose_no_name(api: Api) -> None:
    person = api.cast.user("member")
    one, two = User.objects.get(pk=person.pk), User.objects.get(pk=person.pk)
    update_profile(user=one, first_name="Ana")
    update_profile(user=two, last_name="Lima")
    person.refresh_from_db()
    assert (person.first_name, person.last_name, person.display_name) == ("Ana", "Lima", "Member")


def test_what_is_not_ours_to_change_is_ignored(api: Api) -> None:
    before = api.get("member", "/profile")
    foreign = {"id": "0", "email": "x@example.com", "name": "Root", "is_staff": True, "role": "owner"}
    assert api.send("member", "PATCH", "/profile", foreign).json() == before
    user = api.cast.user("member")
    user.refresh_from_db()
    assert not user.is_staff


@pytest.mark.parametrize("value", [1, True, [], {}, "x" * 101, "a\r\nb", "a\u202eb", "a\x07"])
def test_a_bad_name_is_refused_beside_its_member(api: Api, value: object) -> None:
    assert api.faults("member", "PATCH", "/profile", {"firstName": value, "lastName": "Silva"}) == {"firstName"}
    assert api.get("member", "/profile")["lastName"] == ""
