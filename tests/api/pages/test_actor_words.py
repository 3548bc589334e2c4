"""The service's own changes name it in the language of the page. Logs, exports and people's names stay as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from audit.actor import job_of, system
from audit.actor_words import actor_words
from audit.models import AdminAuditEntry
from oauth_ext.services.token_families import TOKEN_SERVER
from tests.api.audit.log_rows import add_change
from tests.api.pages.conftest import Site, text
from tests.factories.streamed import body_of
from tests.product import PACKAGES

GERMAN = {"Accept-Language": "de"}
MARKED = re.compile(r'system\(sentence\("([^"]+)"\)\)')


def open_log(site: Site, query: str = "", language: str = "de") -> str:
    answer: Any = site.cast.client("admin").get(
        f"{site.path('audit_pages:admin-log')}{query}", headers={"Accept-Language": language}
    )
    assert answer.status_code == 200
    return text(answer)


@pytest.fixture
def changed(site: Site) -> Site:
    """A change of the token server, one of a command, one of a person whose name looks alike, and a foreign one."""
    org = site.cast.org.id
    for number, (actor_id, label) in enumerate(
        (
            ("system", TOKEN_SERVER.label),
            ("system", system("set_subscription").label),
            (str(site.cast.user("member").id), "System (vendor access)"),
        )
    ):
        add_change(org, actor_id=actor_id, actor_label=label, target_id=f"t-{number}", target_label="it")
    add_change(site.cast.other_org.id, actor_id="system", actor_label=system("grace period").label)
    return site


def test_the_log_has_the_service_in_the_language_of_the_page(changed: Site) -> None:
    german, english = open_log(changed), open_log(changed, language="en")
    assert "System (Token-Server)" in german
    assert "System (token server)" not in german
    assert "System (token server)" in english
    for page in (german, english):
        assert "System (set_subscription)" in page, "a command has one name"
        assert "System (vendor access)" in page, "a person's name is theirs"
        assert "grace period" not in page
        assert "Nachfrist" not in page


def test_a_row_s_details_have_it_too_and_the_row_keeps_its_own(changed: Site) -> None:
    row = AdminAuditEntry.objects.get(target_id="t-0", org_id=changed.cast.org.id)
    assert "<dd>System (Token-Server)</dd>" in open_log(changed, f"?entry={row.id}")
    row.refresh_from_db()
    assert row.actor_label == "System (token server)"


def test_an_export_has_what_is_stored(changed: Site) -> None:
    answer: Any = changed.cast.client("admin").get(
        f"/api/audit/admin?format=csv&org_id={changed.cast.org.id}", headers=GERMAN
    )
    assert answer.status_code == 200
    content = body_of(answer).decode()
    assert "System (token server)" in content
    assert "Token-Server" not in content


def test_every_job_that_is_words_has_a_message_for_it() -> None:
    catalog = Path("locale/de/LC_MESSAGES/django.po").read_text()
    files = [path for package in PACKAGES for path in Path(package).rglob("*.py")]
    jobs = {job for path in files for job in MARKED.findall(path.read_text())}
    assert {"token server", "vendor sign-in"} <= jobs
    assert {job for job in jobs if f'msgid "{job}"\nmsgstr ""' in catalog or f'msgid "{job}"' not in catalog} == set()


@pytest.mark.parametrize(
    ("actor_id", "label", "job"),
    [
        ("system", "System (tool watch)", "tool watch"),
        ("system", "System (", ""),
        ("system", "tool watch", ""),
        ("a-person", "System (tool watch)", ""),
    ],
)
def test_only_the_service_has_a_job(actor_id: str, label: str, job: str) -> None:
    assert job_of(actor_id, label) == job
    assert job or actor_words(actor_id, label) == label
