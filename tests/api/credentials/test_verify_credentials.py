"""The check of everything stored: names what does not open, prints no value, and its exit code can be relied on."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from credentials.credential_scope import TYPED_SCOPES, CredentialScope
from credentials.errors import UnusableReason
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from credentials.verification import verify_credentials
from tests.factories.credentials import SECRET, Setting


def store_in_two_organizations(setting: Setting) -> None:
    setting.store_everywhere()
    setting.store(organization=setting.cast.other_org, actor=setting.cast.user("other_owner"))


def test_when_all_open_it_says_how_many(setting: Setting) -> None:
    store_in_two_organizations(setting)
    out = StringIO()
    call_command("verify_credentials", stdout=out)
    assert out.getvalue() == "5 open, 0 do not\n"


def test_without_credentials_there_is_nothing_wrong(setting: Setting) -> None:
    out = StringIO()
    call_command("verify_credentials", stdout=out)
    assert out.getvalue() == "0 open, 0 do not\n"


def test_what_does_not_open_is_named_and_fails_the_command(setting: Setting) -> None:
    store_in_two_organizations(setting)
    team = Credential.objects.get(scope=CredentialScope.TEAM.value)
    Credential.objects.filter(pk=team.pk).update(sealed=b"damaged")
    OrganizationDataKey.objects.filter(organization=setting.cast.other_org).update(key_id="lost")
    out = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("verify_credentials", stdout=out)
    assert caught.value.returncode == 1
    printed = out.getvalue()
    assert f"does_not_open: team credential {team.id} for acme of organization {setting.cast.org.id}" in printed
    assert "key_not_configured: organization credential" in printed
    assert printed.splitlines()[-1] == "3 open, 2 do not"
    assert SECRET not in printed


def test_a_data_key_remembered_in_this_process_hides_nothing(setting: Setting) -> None:
    setting.store()
    organization_id = setting.cast.org.id
    (ref,) = credential_refs(organization_id)
    assert open_fields(ref, organization_id=organization_id, wrapped=wrapped_keys(organization_id))
    OrganizationDataKey.objects.all().delete()
    assert [each.fault for each in verify_credentials()] == [UnusableReason.DATA_KEY_MISSING]


def test_results_carry_no_content(setting: Setting) -> None:
    setting.store_everywhere()
    results = list(verify_credentials())
    assert {each.scope for each in results} == set(TYPED_SCOPES)
    assert SECRET not in repr(results)
