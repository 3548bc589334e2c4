"""The variables of `make run`. Contract: 1"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.supervisor.notes import start_notes
from gateway.supervisor.options import Options, StartRefused, read_options

FOLDER = Path("/project")


def options_of(**environ: str) -> Options:
    return read_options(environ, FOLDER)


def test_defaults_are_the_contract() -> None:
    options = options_of()
    assert (options.port, options.idp_port, options.vendor_port) == (8000, 9400, 9100)
    assert (options.host, options.base_url) == ("127.0.0.1", "http://127.0.0.1:8000")
    assert options.var == FOLDER / "var"
    assert options.demo
    assert options.catalog is None


def test_an_empty_variable_is_absent() -> None:
    assert options_of(PORT="", VAR="", HOST="", DEMO="", REDIS_URL="", CATALOG="", BASE_URL="") == options_of()


def test_variables_do_what_they_say(tmp_path: Path) -> None:
    catalog = tmp_path / "more.toml"
    catalog.touch()
    options = options_of(PORT="8765", VAR=str(tmp_path), CATALOG=str(catalog), DEMO="0", REDIS_URL="redis://h/1")
    assert (options.port, options.base_url) == (8765, "http://127.0.0.1:8765")
    assert (options.var, options.catalog, options.demo, options.has_redis) == (tmp_path, catalog, False, True)


def test_redis_from_a_file_counts() -> None:
    assert options_of(REDIS_URL_FILE="/run/secrets/redis").has_redis


def test_relative_folder_starts_at_the_project() -> None:
    assert options_of(VAR="elsewhere/data").var == FOLDER / "elsewhere/data"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("IDP_PORT", "-1"),
        ("VENDOR_PORT", "9100.5"),
        ("PORT", "٨٠٠٠"),
        ("DEMO", "maybe"),
        ("WEB_PROCESSES", "0"),
        ("WEB_PROCESSES", "many"),
        ("BASE_URL", "gateway.example.com"),
        ("BASE_URL", "https://gateway.example.com/path"),
        ("BASE_URL", "ftp://gateway.example.com"),
        ("CATALOG", "/no/such/file.toml"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(variable: str, value: str) -> None:
    with pytest.raises(StartRefused) as refused:
        options_of(**{variable: value})
    assert f"{variable}={value}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_equal_ports_are_refused_only_where_both_are_used() -> None:
    with pytest.raises(StartRefused, match="PORT and VENDOR_PORT are both 9100"):
        options_of(PORT="9100")
    assert options_of(PORT="9100", DEMO="0").required_ports() == {"PORT": 9100}


def test_a_provider_of_ones_own_replaces_the_demo_one() -> None:
    options = options_of(OIDC_OP_DISCOVERY_URL="https://id.example.com/.well-known/openid-configuration")
    assert not options.runs_demo_provider
    assert options.required_ports() == {"PORT": 8000, "VENDOR_PORT": 9100}


@pytest.mark.parametrize(
    ("environ", "idp_url", "vendor_url"),
    [
        ({}, "http://127.0.0.1:9400", "http://127.0.0.1:9100"),
        ({"HOST": "localhost"}, "http://127.0.0.1:9400", "http://localhost:9100"),
        ({"HOST": "::1"}, "http://127.0.0.1:9400", "http://[::1]:9100"),
        ({"HOST": "0.0.0.0", "BASE_URL": "http://box.lan:8000"}, "http://box.lan:9400", "http://127.0.0.1:9100"),
        ({"HOST": "10.1.2.3", "BASE_URL": "http://10.1.2.3:8000"}, "http://10.1.2.3:9400", "http://10.1.2.3:9100"),
    ],
)
def test_demo_addresses_follow_the_host(environ: dict[str, str], idp_url: str, vendor_url: str) -> None:
    options = options_of(**environ)
    assert (options.idp_url, options.vendor_url) == (idp_url, vendor_url)


def test_nothing_surprising_needs_no_note() -> None:
    assert start_notes(options_of(), {}) == []


def test_notes_name_what_may_surprise() -> None:
    environ = {"HOST": "10.1.2.3", "WEB_PROCESSES": "4"}
    notes = start_notes(read_options(environ, FOLDER), environ)
    assert [note.split()[0] for note in notes] == ["WEB_PROCESSES=4", "HOST=10.1.2.3:", "HOST=10.1.2.3:"]
    assert any("DEMO=0" in note for note in notes)


def test_many_processes_with_redis_need_no_note() -> None:
    environ = {"WEB_PROCESSES": "4", "REDIS_URL": "redis://h/1"}
    assert start_notes(read_options(environ, FOLDER), environ) == []
