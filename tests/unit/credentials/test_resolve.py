"""Which credential wins: the table of the rule, the same rule over generated cases, and an explanation that agrees."""

from __future__ import annotations

import random
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credentials.resolve import CredentialRef, Reason, explain, resolve
from credentials.scopes import CredentialScope

OLD_TEAM, YOUNG_TEAM, FOREIGN_TEAM = (UUID(int=number) for number in (1, 2, 3))
CLIENT, OTHER_CLIENT = UUID(int=11), UUID(int=12)


def ref(
    scope: CredentialScope,
    *,
    team: UUID | None = None,
    client: UUID | None = None,
    name: str = "",
    vendor: str = "acme",
) -> CredentialRef:
    return CredentialRef(
        id=uuid4(),
        vendor=vendor,
        scope=scope,
        team_id=team,
        service_client_id=client,
        name=name,
        data_key_version=1,
        sealed=b"sealed-bytes",
        revision=1,
    )


DEFAULT = ref(CredentialScope.ORGANIZATION)
OLD_TEAMS, YOUNG_TEAMS, FOREIGN_TEAMS = (
    ref(CredentialScope.TEAM, team=team) for team in (OLD_TEAM, YOUNG_TEAM, FOREIGN_TEAM)
)
OLD_KEY, YOUNG_KEY, FOREIGN_KEY = (
    ref(CredentialScope.NAMED_KEY, team=team, name=f"key {team}") for team in (OLD_TEAM, YOUNG_TEAM, FOREIGN_TEAM)
)
UNBOUND_KEY = ref(CredentialScope.NAMED_KEY, name="spare")
OWN, OTHERS = (ref(CredentialScope.SERVICE_CLIENT, client=client) for client in (CLIENT, OTHER_CLIENT))
EVERYTHING = [
    DEFAULT, OLD_TEAMS, YOUNG_TEAMS, FOREIGN_TEAMS, OLD_KEY, YOUNG_KEY, FOREIGN_KEY, UNBOUND_KEY, OWN, OTHERS,
]  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "teams", "expected"),
    [
        (EVERYTHING, [OLD_TEAM, YOUNG_TEAM], OLD_KEY),
        (EVERYTHING, [YOUNG_TEAM, OLD_TEAM], YOUNG_KEY),  # the caller's order is the rule, not the ids'
        (EVERYTHING, [YOUNG_TEAM], YOUNG_KEY),
        (EVERYTHING, [], DEFAULT),
        ([DEFAULT, OLD_TEAMS, YOUNG_KEY], [OLD_TEAM, YOUNG_TEAM], YOUNG_KEY),  # any bound key before any team's own
        ([DEFAULT, YOUNG_TEAMS, OLD_TEAMS], [OLD_TEAM, YOUNG_TEAM], OLD_TEAMS),
        ([DEFAULT, FOREIGN_TEAMS, FOREIGN_KEY], [OLD_TEAM], DEFAULT),
        ([DEFAULT, UNBOUND_KEY], [OLD_TEAM], DEFAULT),
        ([UNBOUND_KEY, FOREIGN_TEAMS, FOREIGN_KEY, OWN], [OLD_TEAM], None),
        ([], [OLD_TEAM], None),
    ],
)
def test_a_person(candidates: list[CredentialRef], teams: list[UUID], expected: CredentialRef | None) -> None:
    assert resolve(candidates, service_client_id=None, team_ids=teams) is expected


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (EVERYTHING, OWN),
        ([DEFAULT, OTHERS], DEFAULT),
        ([DEFAULT, OLD_TEAMS, OLD_KEY, UNBOUND_KEY], DEFAULT),
        ([OLD_TEAMS, OLD_KEY, UNBOUND_KEY, OTHERS], None),
        ([], None),
    ],
)
def test_a_service_account(candidates: list[CredentialRef], expected: CredentialRef | None) -> None:
    assert resolve(candidates, service_client_id=CLIENT, team_ids=[]) is expected


def test_a_service_account_never_uses_a_teams_credentials() -> None:
    assert resolve([OLD_TEAMS, OLD_KEY], service_client_id=CLIENT, team_ids=[OLD_TEAM]) is None


def test_two_vendors_at_once_are_a_mistake_not_a_choice() -> None:
    foreign = ref(CredentialScope.ORGANIZATION, vendor="globex")
    for ask in (resolve, explain):
        with pytest.raises(ValueError, match="more than one vendor"):
            ask([DEFAULT, foreign], service_client_id=None, team_ids=[])


def test_an_unknown_scope_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="unknown credential scope"):
        resolve([ref("everybody")], service_client_id=None, team_ids=[])  # type: ignore[arg-type]


def test_the_explanation_names_a_reason_for_each() -> None:
    person = {
        step.credential.id: step.reason
        for step in explain(EVERYTHING, service_client_id=None, team_ids=[OLD_TEAM, YOUNG_TEAM])
    }
    assert person == {
        OLD_KEY.id: Reason.CHOSEN,
        YOUNG_KEY.id: Reason.LESS_SPECIFIC,
        OLD_TEAMS.id: Reason.LESS_SPECIFIC,
        YOUNG_TEAMS.id: Reason.LESS_SPECIFIC,
        DEFAULT.id: Reason.LESS_SPECIFIC,
        FOREIGN_TEAMS.id: Reason.OTHER_TEAM,
        FOREIGN_KEY.id: Reason.OTHER_TEAM,
        UNBOUND_KEY.id: Reason.UNBOUND,
        OWN.id: Reason.SERVICE_ACCOUNTS_ONLY,
        OTHERS.id: Reason.SERVICE_ACCOUNTS_ONLY,
    }
    machine = {step.credential.id: step.reason for step in explain(EVERYTHING, service_client_id=CLIENT, team_ids=[])}
    assert machine[OWN.id] is Reason.CHOSEN
    assert machine[OTHERS.id] is Reason.OTHER_SERVICE_ACCOUNT
    assert machine[OLD_KEY.id] is machine[OLD_TEAMS.id] is Reason.PEOPLE_ONLY
    assert machine[UNBOUND_KEY.id] is Reason.UNBOUND


def test_the_explanation_lists_the_usable_in_the_order_they_would_be_tried() -> None:
    steps = explain(EVERYTHING, service_client_id=None, team_ids=[OLD_TEAM, YOUNG_TEAM])
    assert [step.credential for step in steps[:5]] == [OLD_KEY, YOUNG_KEY, OLD_TEAMS, YOUNG_TEAMS, DEFAULT]


def test_a_ref_does_not_show_its_ciphertext() -> None:
    assert "sealed" not in repr(DEFAULT)


uuids = st.integers(min_value=0, max_value=4).map(lambda number: UUID(int=number))
refs = st.one_of(
    st.builds(lambda: ref(CredentialScope.ORGANIZATION)),
    st.builds(lambda team: ref(CredentialScope.TEAM, team=team), uuids),
    st.builds(lambda team: ref(CredentialScope.NAMED_KEY, team=team, name="k"), st.none() | uuids),
    st.builds(lambda client: ref(CredentialScope.SERVICE_CLIENT, client=client), uuids),
)
cases = st.tuples(
    st.lists(refs, max_size=12), st.none() | uuids, st.lists(uuids, max_size=4, unique=True), st.randoms()
)


@given(cases)
def test_the_order_of_the_candidates_does_not_matter(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, shuffler = case
    first = resolve(candidates, service_client_id=client, team_ids=teams)
    shuffler.shuffle(candidates)
    assert resolve(candidates, service_client_id=client, team_ids=teams) is first


@given(cases)
def test_nobody_is_given_what_hangs_on_somebody_else(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, _ = case
    chosen = resolve(candidates, service_client_id=client, team_ids=teams)
    usable = [
        each
        for each in candidates
        if each.scope is CredentialScope.ORGANIZATION
        or (client is not None and each.service_client_id == client)
        or (client is None and each.team_id in teams)
    ]
    assert (chosen is None) == (not usable)
    assert chosen is None or chosen in usable


@given(cases)
def test_without_the_winner_the_call_falls_through_to_something_no_more_specific(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, _ = case
    order = [
        CredentialScope.NAMED_KEY,
        CredentialScope.SERVICE_CLIENT,
        CredentialScope.TEAM,
        CredentialScope.ORGANIZATION,
    ]
    ranks = []
    while (chosen := resolve(candidates, service_client_id=client, team_ids=teams)) is not None:
        ranks.append((order.index(chosen.scope), teams.index(chosen.team_id) if chosen.team_id else 0))
        candidates = [each for each in candidates if each is not chosen]
    assert ranks == sorted(ranks)


@given(cases)
def test_the_explanation_agrees_with_the_choice(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, _ = case
    steps = explain(candidates, service_client_id=client, team_ids=teams)
    chosen = [step.credential for step in steps if step.reason is Reason.CHOSEN]
    winner = resolve(candidates, service_client_id=client, team_ids=teams)
    assert chosen == ([] if winner is None else [winner])
    assert sorted(step.credential.id for step in steps) == sorted(each.id for each in candidates)
