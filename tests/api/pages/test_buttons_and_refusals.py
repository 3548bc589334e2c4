"""Each role presses every button that its pages show, and sends every form that its pages hide.

The pages are those of the URL configuration and whatever they link to. Each form is sent in a transaction that is
rolled back, so all of them meet the same rows.
"""

from __future__ import annotations

import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.test import Client as Browser
from django.urls import resolve

from bench.page_seed import SOME, Seeded, seed
from bench.page_walk import page_paths
from credentials.vendor_check import ProbeAnswer
from gateway.coordination.rules import Rule
from oauth_ext.services import trusted_issuers
from orgs.models import Membership
from proxy.control_plane import connect_vendor
from proxy.control_plane.discovery import Discovered
from proxy.vendors import credential_probe
from tests.api.oauth_ext.flow import LOOPBACK, make_flow
from tests.api.pages.conftest import text
from tests.api.pages.form_reader import PageReader, Submission
from tests.factories.all_rows import SESSIONS, rows
from tests.factories.cast import make_person

NUMBER = re.compile(r"[0-9][\w.:%-]*")
ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|svc_\w+")
WRITE = re.compile(r"\s*(INSERT|UPDATE|DELETE)", re.I)
FILTERS = 1  # of a link: more of them are the same page again
ALERT = re.compile(r'(role="alert"|aria-invalid="true").{0,300}', re.S)
# Their calls are made by other threads, which do not see rows of this transaction: test_tool_page.py,
# test_connection_test_page.py. A device's code is one of test_device_page.py.
ELSEWHERE = {"proxy_pages:tool", "proxy_pages:connection-test", "oauth_pages:device"}
# Nothing answers at the addresses of vendors and destinations here, which the page says.
AWAY = {"discover", "load", "test"}
SHOWS = {"link", "hide"}  # rows as they are, or fewer
AS_IT_IS = {
    "language",
    "mail-choices",
    "oidc_logout",
    "orgs:server-access",
    "oauth_pages:service-client-settings",
}  # sent without a change
# The list of no tools is asked about once more: test_client_tools_page.py, test_tool_access_page.py
NO_TOOL = ("fingerprint", "mode", "version")
NOT_MET = {"orgs:invite", "billing_pages:plan"}  # not a member yet; a service that takes payments
ROLES = ("owner", "admin", "member")
Action = tuple[str, ...]


@pytest.fixture
def world(db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Seeded:
    """An organization with something of each kind; vendors accept every key."""

    async def accept(*question: object) -> ProbeAnswer:
        return ProbeAnswer(200, tools_listed=True)

    monkeypatch.setattr(credential_probe, "probe_credentials", accept)
    monkeypatch.setattr(connect_vendor, "discover_with", lambda *_, **__: Discovered({}, frozenset()))
    monkeypatch.setattr(trusted_issuers, "_faults_of_keys", lambda organization, wanted: {})  # no provider is there
    settings.RATELIMIT_ENABLE = False
    settings.BACKSTOP = Rule(f"walk {uuid.uuid4()}", limit=100_000, window_s=60)
    made = seed(SOME)
    Membership.objects.create(organization=made.cast.org, user=make_person("second_owner"), role="owner")
    make_flow(made.cast, "member", LOOPBACK).tokens()
    return made


@contextmanager
def rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def written() -> Iterator[list[str]]:
    """The statements that may change a row, but for those of sessions."""
    found: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if WRITE.match(sql) and not SESSIONS.search(sql):
            found.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield found


def shape(link: str) -> str:
    """Links to pages of one kind have the same."""
    return NUMBER.sub("0", ID.sub("id", link))


@dataclass
class Walk:
    """All that a person can press: the status of a link of each kind, and one form for each thing that can be done."""

    statuses: dict[str, int] = field(default_factory=dict)
    actions: dict[Action, Submission] = field(default_factory=dict)


def walk(browser: Browser, world: Seeded) -> Walk:
    """From all pages of the URL configuration on, as far as links lead."""
    found, known, waiting = Walk(), dict[str, int](), deque(page_paths(world.things).values())
    shapes = set[str]()
    while waiting:
        path = waiting.popleft()
        answer = browser.get(path)
        known[path] = answer.status_code
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        page = PageReader(path, text(answer))
        for submission in page.submissions:
            found.actions.setdefault(submission.action, submission)
        new = [link for link in sorted(page.links) if link.count("=") <= FILTERS]
        for link in {shape(link): link for link in new if shape(link) not in shapes}.values():
            shapes.add(shape(link))
            found.statuses[link] = known.get(link, 0)
            waiting += [] if link in known else [link]
    found.statuses = {link: known[link] for link in found.statuses}
    return found


def send(browser: Browser, submission: Submission, *, follow: bool) -> tuple[Any, bool]:
    """The answer, or the page that it leads to, and whether a row was written; afterwards all are as they were.

    An answer that is not followed is looked at closely: a statement that changed no row does not count.
    """
    cookies = copy(browser.cookies)
    with rolled_back(), written() as statements:
        answer = browser.post(submission.path, submission.data(), follow=follow)
        after = rows() if statements and not follow else {}
    browser.cookies = cookies
    return answer, bool(statements) and (follow or rows() != after)


def pressed(browser: Browser, found: Walk) -> list[str]:
    """The faults of the answers to the buttons that are shown."""
    wrong = [f"{link}: {status}" for link, status in found.statuses.items() if status not in (200, 302)]
    for action, submission in found.actions.items():
        if action[0] in ELSEWHERE or action[1:] == NO_TOOL:
            continue
        answer, changed = send(browser, submission, follow=True)
        faults = ALERT.findall(text(answer)) if action[-1] not in AWAY else []
        if answer.status_code not in (200, 201) or faults:
            wrong.append(f"{submission}: {answer.status_code} {faults}")
        elif not changed and action[0] not in AS_IT_IS and action[-1] not in SHOWS | AWAY:
            wrong.append(f"{submission} changed nothing")
    return wrong


def not_refused(browser: Browser, submissions: Iterable[Submission], statuses: set[int]) -> list[str]:
    """Forms that had another answer than one of the refusals, or changed something."""
    wrong = []
    for submission in submissions:
        answer, changed = send(browser, submission, follow=False)
        if changed or answer.status_code not in statuses:
            wrong.append(f"{submission}: {answer.status_code}, {changed=}")
    return wrong


def posting_pages(world: Seeded) -> set[str]:
    """Names of the organization's pages that take a form."""
    found = [resolve(path) for path in page_paths(world.things).values()]
    gates = {each.view_name: getattr(getattr(each.func, "view_class", None), "gates", {}) for each in found}
    return {name for name, methods in gates.items() if any(each.startswith("POST") for each in methods)}


def test_roles_can_do_what_they_see_and_nothing_else(world: Seeded) -> None:
    browsers = {who: world.cast.client(who) for who in (*ROLES, "other_owner", "stranger", "nobody")}
    walks = {role: walk(browsers[role], world) for role in ROLES}
    assert all(len(found.statuses) > 25 for found in walks.values())
    assert posting_pages(world) - {name for each in walks.values() for name, *_ in each.actions} == NOT_MET
    wrong = {role: pressed(browsers[role], found) for role, found in walks.items()}

    actions = walks["owner"].actions
    for role in ("admin", "member"):
        hidden = [each for action, each in actions.items() if action not in walks[role].actions]
        assert len(hidden) > 5
        # The key of a form that may be opened is good for the person who opened it.
        runs = [each for each in hidden if each.action[0] == "proxy_pages:tool"]
        # A token is its person's own.
        tokens = [each for each in hidden if each.action[0] == "token-revoke"]
        assert tokens
        wrong[role] += not_refused(browsers[role], tokens, {404})
        wrong[role] += not_refused(browsers[role], (each for each in hidden if each not in [*runs, *tokens]), {403})
        wrong[role] += not_refused(browsers[role], runs, {409})

    own, foreign = str(world.cast.other_org.id), world.things["org_id"]
    of_organization = [each for each in actions.values() if foreign in each.path]
    assert len(of_organization) > 50
    wrong["nobody"] = not_refused(browsers["nobody"], of_organization, {302})
    for who in ("stranger", "other_owner"):
        wrong[who] = not_refused(browsers[who], of_organization, {404})
    # The things of the first organization below the address of the sender's own.
    moved = [each.moved(foreign, own) for each in of_organization]
    moved = [each for each in moved if ID.search(f"{each.path} {each.chosen()}".replace(own, ""))]
    assert len(moved) > 25
    wrong["moved"] = not_refused(browsers["other_owner"], moved, {200, 302, 403, 404, 409, 422})
    assert not any(wrong.values()), "\n".join(f"{who}: {each}" for who, found in wrong.items() for each in found)
