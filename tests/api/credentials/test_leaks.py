"""No stored value can be read anywhere: rows, labels, selectors, logs, audit, refusals, the whole database."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.forms.models import model_to_dict

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.errors import UnusableCredential
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential, credential_refs, credential_summaries
from credentials.services.credentials import delete_credential
from gateway.lib.errors import DomainError
from gateway.lib.keyring import keyring
from tests.factories.credentials import SECRET, Setting

# As text, and as it would look where bytes are written as text.
SPELLINGS = (
    SECRET.encode(),
    SECRET.encode().hex().encode(),
    base64.b64encode(SECRET.encode()).rstrip(b"=")[:-1],
    SECRET[::-1].encode(),
)


def leaks(text: str | bytes) -> bool:
    """Whether the stored value can be read in `text`."""
    haystack = text.encode() if isinstance(text, str) else text
    return any(spelling in haystack for spelling in SPELLINGS)


def every_value_in_the_database() -> Iterator[tuple[str, str, bytes]]:
    """Table, column and content of each value of each row of each table."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            columns = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for column, value in zip(columns, row, strict=True):
                    content = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                    yield table, column, content


def raw_dump() -> list[bytes]:
    """The database's own bytes: the files of SQLite with its log, PostgreSQL's binary copy of each table."""
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        return [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
    parts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            rows = f"SELECT * FROM {connection.ops.quote_name(table)}"  # a partitioned table has none of its own
            with cursor.cursor.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)") as copy:
                parts.append(b"".join(bytes(block) for block in copy))
    return parts


def test_the_search_finds_what_is_there(setting: Setting) -> None:
    """The tests below would pass as well with a search that finds nothing."""
    for content in (SECRET, f"x{SECRET}y", SECRET.encode().hex(), base64.b64encode(SECRET.encode())):
        assert leaks(content)
    setting.cast.org.name = SECRET
    setting.cast.org.save()
    found = {(table, column) for table, column, content in every_value_in_the_database() if leaks(content)}
    assert found == {("orgs_organization", "name")}


def test_no_column_of_any_table_holds_a_stored_value(setting: Setting) -> None:
    setting.store_everywhere()
    setting.store(fields={"apiKey": f"{SECRET}-2", "tenant": SECRET})
    delete_credential(actor=setting.cast.user("owner"), credential=setting.store(CredentialScope.TEAM))
    values = list(every_value_in_the_database())
    assert any(table == "credentials_credential" and column == "sealed" for table, column, _ in values)
    assert [(table, column) for table, column, content in values if leaks(content)] == []


def test_no_data_key_is_stored_in_the_open(setting: Setting) -> None:
    setting.store()
    (wrapped,) = wrapped_keys(setting.cast.org.id)
    aad = f"dek|{setting.cast.org.id}|{wrapped.version}".encode()
    data_key = keyring().unwrap(wrapped.key_id, wrapped.wrapped, aad)
    secrets = [data_key, data_key.hex().encode(), base64.b64encode(data_key), *keyring().keys.values()]
    for table, column, content in every_value_in_the_database():
        assert not any(secret in content for secret in secrets), (table, column)


def test_the_database_as_it_lies_on_disk_holds_no_stored_value(committed_setting: Setting) -> None:
    committed_setting.store_everywhere()
    committed_setting.store(fields={"apiKey": f"{SECRET}-2"})
    committed_setting.cast.org.name = "a name that must be found"
    committed_setting.cast.org.save()
    dump = raw_dump()
    assert any(b"a name that must be found" in part for part in dump)
    assert not any(leaks(part) for part in dump)


def test_no_row_shows_its_content(setting: Setting) -> None:
    for row in [*setting.store_everywhere(), *Credential.objects.all(), *OrganizationDataKey.objects.all()]:
        shown = f"{row!r} {row} {vars(row)} {model_to_dict(row)}"
        assert not leaks(shown)
    for row in Credential.objects.all():
        assert not leaks(f"{row.as_target()}")


def test_no_selector_returns_content(setting: Setting) -> None:
    stored = setting.store_everywhere()
    organization = setting.cast.org
    assert not leaks(f"{credential_summaries(organization)}")
    assert not leaks(f"{[vars(credential(organization, each.id)) for each in stored]}")
    assert not leaks(f"{credential_refs(organization.id)} {wrapped_keys(organization.id)}")


def test_no_audit_row_holds_content(setting: Setting) -> None:
    for stored in setting.store_everywhere():
        delete_credential(actor=setting.cast.user("owner"), credential=stored)
    rows = list(AdminAuditEntry.objects.values())
    assert len(rows) == 8
    assert not leaks(f"{rows}")


def test_no_log_line_holds_content(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    setting.store_everywhere()
    setting.store()
    wrapped = wrapped_keys(setting.cast.org.id)
    for ref in credential_refs(setting.cast.org.id):
        open_fields(ref, organization_id=setting.cast.org.id, wrapped=wrapped)
        with pytest.raises(UnusableCredential):
            open_fields(ref, organization_id=setting.cast.other_org.id, wrapped=wrapped)
    call_command("verify_credentials")
    assert "credential_unusable" in caplog.text
    messages = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    # Statements are logged at debug level only, with the sealed bytes as their parameters.
    assert not any(leaks(message) for message in messages)


def test_no_refusal_repeats_content(setting: Setting) -> None:
    setting.store(CredentialScope.NAMED_KEY)
    for changes in (
        {"fields": {"apiKey": SECRET, "platform": SECRET}},
        {"fields": {"apiKey": SECRET, "unknown": SECRET}},
        {"fields": {"apiKey": f"{SECRET}\n" + "x"}},
        {"scope": CredentialScope.NAMED_KEY, "name": "Reporting"},
        {"scope": CredentialScope.TEAM, "team": setting.foreign_team},
    ):
        with pytest.raises(DomainError) as caught:
            setting.store(**changes)  # type: ignore[arg-type]
        assert not leaks(f"{caught.value!r} {caught.value.message} {caught.value.fields}")
