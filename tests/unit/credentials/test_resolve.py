"""The credential that wins: the table of the rule, the same rule over generated cases, and its explanation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialIndex, CredentialRef, resolve

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
def test_a_service_client(candidates: list[CredentialRef], expected: CredentialRef | None) -> None:
    assert resolve(candidates, service_client_id=CLIENT, team_ids=[]) is expected


def test_a_service_client_never_uses_a_teams_credentials() -> None:
    assert resolve([OLD_TEAMS, OLD_KEY], service_client_id=CLIENT, team_ids=[OLD_TEAM]) is None


def test_two_vendors_at_once_are_a_mistake_not_a_choice() -> None:
    foreign = ref(CredentialScope.ORGANIZATION, vendor="globex")
    with pytest.raises(ValueError, match="more than one vendor"):
        resolve([DEFAULT, foreign], service_client_id=None, team_ids=[])


def test_an_unknown_scope_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="unknown credential scope"):
        resolve([ref("everybody")], service_client_id=None, team_ids=[])  # type: ignore[arg-type]


def test_one_after_the_other_is_tried_in_this_order() -> None:
    left, tried = list(EVERYTHING), []
    while (chosen := resolve(left, service_client_id=None, team_ids=[OLD_TEAM, YOUNG_TEAM])) is not None:
        tried.append(chosen)
        left.remove(chosen)
    assert tried == [OLD_KEY, YOUNG_KEY, OLD_TEAMS, YOUNG_TEAMS, DEFAULT]
    assert {each.id for each in left} == {FOREIGN_TEAMS.id, FOREIGN_KEY.id, UNBOUND_KEY.id, OWN.id, OTHERS.id}


def test_a_ref_does_not_show_its_ciphertext() -> None:
    assert "sealed" not in repr(DEFAULT)


uuids = st.integers(min_value=0, max_value=4).map(lambda number: UUID(int=number))
refs = st.one_of(
    st.builds(lambda: ref(CredentialScope.ORGANIZATION)),
    st.builds(lambda team: ref(CredentialScope.TEAM, team=team), uuids),
    st.builds(lambda team: ref(CredentialScope.NAMED_KEY, team=team, name="k"), st.none() | uuids),
    st.builds(lambda client: ref(CredentialScope.SERVICE_CLIENT, client=client), uuids),
)
# A busy machine makes these slow, and never wrong.
ON_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
cases = st.tuples(
    st.lists(refs, max_size=12), st.none() | uuids, st.lists(uuids, max_size=4, unique=True), st.randoms()
)


@ON_ANY_MACHINE
@given(cases)
def test_the_order_of_the_candidates_does_not_matter(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, shuffler = case
    first = resolve(candidates, service_client_id=client, team_ids=teams)
    shuffler.shuffle(candidates)
    assert resolve(candidates, service_client_id=client, team_ids=teams) is first


@ON_ANY_MACHINE
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


@ON_ANY_MACHINE
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


def linear(candidates: Sequence[CredentialRef], client: UUID | None, teams: Sequence[UUID]) -> CredentialRef | None:
    """The rule by looking at every credential: (scope, position of its team, id), the smallest."""
    ranked = []
    for each in candidates:
        match each.scope:
            case CredentialScope.ORGANIZATION:
                ranked.append(((2, 0, each.id), each))
            case CredentialScope.SERVICE_CLIENT:
                if client is not None and each.service_client_id == client:
                    ranked.append(((0, 0, each.id), each))
            case _:
                if client is None and each.team_id in teams:
                    rank = 0 if each.scope is CredentialScope.NAMED_KEY else 1
                    ranked.append(((rank, teams.index(each.team_id), each.id), each))
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None


@ON_ANY_MACHINE
@given(cases)
def test_the_index_finds_what_a_look_at_every_credential_finds(
    case: tuple[list[CredentialRef], UUID | None, list[UUID], random.Random],
) -> None:
    candidates, client, teams, _ = case
    index = CredentialIndex(candidates)
    for asked in [(client, teams), (None, teams), (client, []), (UUID(int=99), teams)]:
        expected = linear(candidates, *asked)
        assert index.find(service_client_id=asked[0], team_ids=asked[1]) is expected


def test_indexes_are_equal_if_their_credentials_are() -> None:
    assert CredentialIndex(EVERYTHING) == CredentialIndex(reversed(EVERYTHING))
    assert CredentialIndex(EVERYTHING) != CredentialIndex(EVERYTHING[1:])
    assert CredentialIndex([]) != ()
