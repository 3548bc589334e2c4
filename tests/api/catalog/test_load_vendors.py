"""manage.py load_vendors: files into the catalog, all of a file or nothing of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.conf import settings as project_settings
from django.core.management import CommandError, call_command
from pytest_django import DjangoCaptureOnCommitCallbacks

from gateway.catalog import registry
from gateway.catalog.models import VendorRow
from gateway.coordination import epochs

pytestmark = pytest.mark.django_db
Write = Callable[[str | bytes], str]


def block(slug: str, *, url: str = "https://v.example/mcp", more: str = "") -> str:
    return f'[[vendor]]\nslug = "{slug}"\nname = "{slug.title()}"\nurl = "{url}"\n{more}'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a catalog file and returns its path."""

    def write_file(text: str | bytes) -> str:
        path = tmp_path / "extra.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write_file


def load(*arguments: str) -> str:
    out = StringIO()
    call_command("load_vendors", *arguments, stdout=out)
    return out.getvalue()


def test_a_file_is_loaded_and_loading_it_again_changes_nothing(write: Write) -> None:
    file = write(block("acme") + block("other-one"))
    assert load(file) == "created: 2 (acme, other-one)\nupdated: 0\nunchanged: 0\n"
    before = VendorRow.objects.get(slug="acme")
    assert load(file) == "created: 0\nupdated: 0\nunchanged: 2\n"
    assert VendorRow.objects.get(slug="acme").loaded_at == before.loaded_at
    assert (before.source, before.tool_prefix) == (file[:200], "acme")
    assert registry.load().by_slug["other-one"].tool_prefix == "other_one"


def test_a_changed_vendor_is_updated_and_the_others_stay(write: Write) -> None:
    load(write(block("acme") + block("other")))
    assert load(write(block("acme", url="https://new.example/mcp"))) == "created: 0\nupdated: 1 (acme)\nunchanged: 0\n"
    acme = registry.vendor_or_none("acme")
    assert acme is not None
    assert acme.url == "https://new.example/mcp"
    assert registry.vendor_or_none("other") is not None
    assert registry.vendor_or_none("nobody") is None


def test_two_vendors_may_swap_their_prefixes(write: Write) -> None:
    load(write(block("a", more='tool_prefix = "x"\n') + block("b", more='tool_prefix = "y"\n')))
    load(write(block("a", more='tool_prefix = "y"\n') + block("b", more='tool_prefix = "x"\n')))
    assert dict(VendorRow.objects.values_list("slug", "tool_prefix")) == {"a": "y", "b": "x"}


def test_a_bad_file_changes_nothing_and_says_all_that_is_wrong(write: Write) -> None:
    load(write(block("acme")))
    bad = write(block("acme", url="https://new.example/mcp") + block("new", more="timeout_seconds = 0\nsurprise = 1\n"))
    with pytest.raises(CommandError) as caught:
        load(bad)
    assert str(caught.value).splitlines() == [
        f"{bad}, line 9, vendor[1].timeout_seconds (new): must be between 1 and 300",
        f"{bad}, line 10, vendor[1].surprise (new): is not a key of the catalog",
    ]
    assert caught.value.returncode == 1
    assert list(VendorRow.objects.values_list("definition__url", flat=True)) == ["https://v.example/mcp"]


def test_a_prefix_belongs_to_one_vendor_of_the_whole_catalog(write: Write) -> None:
    load(write(block("acme")))
    with pytest.raises(
        CommandError, match=r'line 9, vendor\[1\]\.tool_prefix \(thief\): "acme" is already the prefix of .* acme'
    ):
        load(write(block("fine") + block("thief", more='tool_prefix = "acme"\n')))
    assert list(VendorRow.objects.values_list("slug", flat=True)) == ["acme"]


@pytest.mark.parametrize(("content", "why"), [(b"\xff", "is not UTF-8 text"), (b"[[vendor", "line 1"), (b"", "vendor")])
def test_what_is_no_catalog_is_refused(write: Write, content: bytes, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        load(write(content))
    assert not VendorRow.objects.exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.toml: No such file"):
        load(str(tmp_path / "nowhere.toml"))
    with pytest.raises(CommandError, match="Is a directory"):
        load(str(tmp_path))


def test_check_only_says_whether_a_file_is_good(write: Write) -> None:
    assert load("--check", write(block("acme"))) == "good: 1\n"
    with pytest.raises(CommandError, match="slug"):
        load("--check", write(block("mcp")))
    assert not VendorRow.objects.exists()


def test_without_a_file_the_shipped_catalog_is_loaded() -> None:
    assert load().startswith("created: 46 (")
    catalog = registry.load()
    assert len(catalog) == 46
    assert catalog.by_slug["github"].headers[0].value == "Bearer {token}"
    assert load() == "created: 0\nupdated: 0\nunchanged: 46\n"


def test_loading_another_file_leaves_the_shipped_vendors(write: Write) -> None:
    load()
    load(write(block("acme")))
    assert VendorRow.objects.count() == 47


def test_the_operators_catalog_is_loaded_too_and_may_override(write: Write, settings: LazySettings) -> None:
    settings.VENDOR_CATALOG = write(block("github", url="https://ghe.example/mcp") + block("acme"))
    assert load().startswith("created: 47 (")
    assert registry.load().by_slug["github"].url == "https://ghe.example/mcp"
    assert load() == "created: 0\nupdated: 0\nunchanged: 47\n"


def test_a_fault_of_the_operators_catalog_names_that_file(write: Write, settings: LazySettings) -> None:
    settings.VENDOR_CATALOG = write(block("github", more='tool_prefix = "linear"\n'))
    with pytest.raises(CommandError, match=r"extra\.toml, line 5, vendor\[0\]\.tool_prefix \(github\): .* linear"):
        load()
    assert not VendorRow.objects.exists()


class Store:
    """Stands in for the coordination store and remembers what it was told."""

    def __init__(self) -> None:
        self.bumped: list[str] = []

    def bump_epochs(self, names: Sequence[str]) -> None:
        self.bumped.extend(names)


def test_a_change_is_announced_after_the_commit_and_only_then(
    write: Write, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    store = Store()
    monkeypatch.setattr("gateway.coordination.backend.current", lambda: store)
    file = write(block("acme"))
    with django_capture_on_commit_callbacks(execute=True):
        load(file)
        assert store.bumped == []
    assert store.bumped == [epochs.CATALOG]
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        load(file)
        load("--check", file)
    assert callbacks == []
    assert store.bumped == [epochs.CATALOG]


def test_an_unreadable_row_does_not_hide_the_others(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    load(write(block("acme") + block("broken")))
    VendorRow.objects.filter(slug="broken").update(definition={"slug": "broken"})
    assert [vendor.slug for vendor in registry.load()] == ["acme"]
    assert registry.vendor_or_none("broken") is None
    assert "broken" in caplog.text


def test_from_the_shell_a_bad_file_ends_in_one_line_and_no_traceback(write: Write) -> None:
    bad = write(block("acme", more="surprise = 1\n"))
    command = [sys.executable, "manage.py", "load_vendors", "--check", bad, "--settings", "tests.settings"]
    ended = subprocess.run(
        command, cwd=project_settings.BASE_DIR, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == f"CommandError: {bad}, line 5, vendor[0].surprise (acme): is not a key of the catalog\n"


def test_overlapping_prefixes_are_named_and_loaded_all_the_same(write: Write) -> None:
    warning = (
        "warning: the prefix acme_pro (acme-pro) begins with acme_ (acme):"
        " no tool of acme is listed or called as acme_pro_…\n"
    )

    def warned(text: str, *options: str) -> str:
        err = StringIO()
        call_command("load_vendors", write(text), *options, stdout=StringIO(), stderr=err)
        return err.getvalue()

    assert warned(block("acme") + block("acme-pro"), "--check") == warning
    assert warned(block("acme") + block("acmes")) == ""
    assert warned(block("acme-pro")) == warning, "the other one was loaded before"
    assert warned(block("acme-pro")) == warned(block("zeta")) == "", "nothing of it changed"
    assert len(registry.load()) == 4
