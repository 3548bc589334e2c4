"""docs/install.md and docs/operations/upgrades.md: what tests/homes executes of them, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.container.make_env import filled, made_values
from tests.factories.compose_files import services_of
from tests.homes.document import Block, blocks, replaced

pytestmark = pytest.mark.one_back_end
ROOT = Path(__file__).resolve().parents[2]
INSTALL = blocks((ROOT / "docs" / "install.md").read_text())
UPGRADES = blocks((ROOT / "docs" / "operations" / "upgrades.md").read_text())
SERVICES = services_of(ROOT / "compose.yaml")


def named(found: list[Block], name: str) -> list[Block]:
    return [block for block in found if block.name == name]


def test_blocks_are_found_by_name_without_their_indentation() -> None:
    text = "1. A\n\n   ```sh one\n   a\n     b\n   ```\n\n```sh\nc\n```\n\n```yaml two.yaml\nd: 1\n```\n"
    assert blocks(text) == [Block("sh", "one", "a\n  b\n"), Block("yaml", "two.yaml", "d: 1\n")]


def test_every_named_block_is_known_to_the_programs_that_execute_them() -> None:
    assert {block.name for block in INSTALL} == {"one-host", "own-vendors", "compose.override.yaml"}
    assert {block.name for block in UPGRADES} == {"one-host"}
    assert len(named(UPGRADES, "one-host")) == 1


def test_the_steps_for_one_host_are_in_their_order() -> None:
    first_words = [block.text.split("\n")[0] for block in named(INSTALL, "one-host")]
    assert [line.split(" ")[:3] for line in first_words] == [
        ["git", "clone", "REPOSITORY"],
        ["umask", "077"],
        ["docker", "compose", "--profile"],
        ["curl", "-fsS", "https://gateway.example.com/ready"],
        ["docker", "compose", "exec"],
    ]


def test_the_file_of_variables_has_places_for_what_the_reader_fills_in() -> None:
    text = filled((ROOT / ".env.example").read_text(), made_values("https://gateway.example.com"))
    for name in ("OIDC_OP_DISCOVERY_URL", "OIDC_RP_CLIENT_ID", "OIDC_RP_CLIENT_SECRET"):
        assert f"\n{name}=\n" in text


def test_overrides_name_services_that_there_are() -> None:
    found = [yaml.safe_load(block.text)["services"] for block in named(INSTALL, "compose.override.yaml")]
    assert len(found) == 2
    assert {name for services in found for name in services} <= SERVICES.keys()


def test_commands_name_services_that_there_are() -> None:
    for block in (*named(INSTALL, "one-host"), *named(INSTALL, "own-vendors"), *named(UPGRADES, "one-host")):
        for line in block.text.splitlines():
            if " run " in line and "compose" in line:
                assert line.split()[-1] in SERVICES
            if "--no-deps" in line:
                assert set(line.split("--no-deps ")[1].split()) <= SERVICES.keys()


def test_values_take_the_place_of_the_documents() -> None:
    assert replaced("curl https://gateway.example.com/x", {"gateway.example.com": "g.localhost"}) == (
        "curl https://g.localhost/x"
    )
