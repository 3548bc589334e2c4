"""Clients of /api that generators make from the OpenAPI document live an organization's whole life with it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.generate_api_clients import PYTHON_GENERATOR, generate_python, generate_typescript
from tests.clients import programs
from tests.clients.programs import MODULES, NODE_PROGRAMS
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.vendors.servers import DemoVendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
pytestmark = pytest.mark.one_back_end

PYTHON_PROGRAM = NODE_PROGRAMS.parent / "python/management_api.py"
SCRIPT_PROGRAM = NODE_PROGRAMS / "management_api.ts"
COMPILER_OPTIONS = {
    "allowImportingTsExtensions": True,
    "lib": ["es2023", "dom"],
    "module": "nodenext",
    "noEmit": True,
    "skipLibCheck": True,
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "target": "es2023",
}


@pytest.fixture(scope="module")
def document(sign_in_gateway: SignInGateway, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document of the running service."""
    with sign_in_gateway.web.client() as client:
        answer = client.get("/api/schema")
    path = tmp_path_factory.mktemp("api-clients") / "openapi.json"
    path.write_text(answer.text)
    return path


def variables(
    gateway: SignInGateway, person: Person, document: Path, home: Path, more: dict[str, str]
) -> dict[str, str]:
    """The environment of a program: a session under the name that the document gives, and a key of the vendor."""
    name = json.loads(document.read_text())["components"]["securitySchemes"]["session"]["name"]
    with gateway.browser(person) as browser:
        browser.open("/profile")
        (key,) = [each.value or "" for each in browser.http.cookies.jar if each.name == name]
    known = {"SESSION_NAME": name, "SESSION_KEY": key, "VENDOR_KEY": DemoVendor.new_api_key()}
    return {**programs.environment(home, person.email), **known, **more}


def assert_whole_life(seen: dict[str, Any], name: str) -> None:
    """The program did everything, and was refused what it had to be refused."""
    assert seen == {
        "organizations": [name],
        "not by token": "session_needed",
        "validated": True,
        "connected": ["acme"],
        "invited": True,
        "one team": True,
        "members": ["owner"],
        "imported": True,
        "call": True,
        "refused call": True,
        "token at /v1": 401,
        "calls": ["acme_create_ticket", "acme_whoami"],
        "actor names the token": True,
        "revoked key": 401,
        "left": [[], []],
        "revoked token": 401,
        "gone": 404,
    }


def test_the_generated_python_client(
    sign_in_gateway: SignInGateway, person: Person, document: Path, tmp_path: Path
) -> None:
    assert PYTHON_GENERATOR.exists(), f"the generator {programs.INSTALL_HINT}"
    package = generate_python(document)
    environment = variables(sign_in_gateway, person, document, tmp_path, {"PYTHONPATH": str(package.parent)})
    interpreter = str(PYTHON_GENERATOR.with_name("python"))
    done = programs.run([interpreter, str(PYTHON_PROGRAM), sign_in_gateway.web.origin], environment)
    assert_whole_life(done.report(), "Python Traders")


def test_the_generated_typescript_client(
    sign_in_gateway: SignInGateway, person: Person, document: Path, tmp_path: Path
) -> None:
    node = programs.newer_node() or programs.skip_without_newer_node()
    types = generate_typescript(document, node)
    # A package of its own, as a customer has it: the program, its types and the library.
    (tmp_path / "node_modules").symlink_to(MODULES)
    program = tmp_path / "management_api.ts"
    program.write_text(SCRIPT_PROGRAM.read_text())
    options = {**COMPILER_OPTIONS, "paths": {"gateway_api": [str(types)]}, "types": []}
    (tmp_path / "globals.d.ts").write_text(
        "declare const process: { argv: string[]; env: Record<string, string | undefined> };\n"
        'declare module "node:assert/strict" {\n'
        "  const assert: { ok(value: unknown, why?: string): asserts value; equal(a: unknown, b: unknown): void };\n"
        "  export default assert;\n}\n"
    )
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": options, "files": ["globals.d.ts", "management_api.ts"]})
    )
    (tmp_path / "package.json").write_text('{"type": "module"}')
    environment = variables(sign_in_gateway, person, document, tmp_path, {})
    checked = programs.run([node, str(MODULES / "typescript/bin/tsc"), "--project", str(tmp_path)], environment)
    assert checked.exit_code == 0, str(checked)
    done = programs.run([node, str(program), sign_in_gateway.web.origin], environment)
    assert_whole_life(done.report(), "Script Traders")


def test_the_script_makes_both(tmp_path: Path) -> None:
    script = Path(programs.ROOT) / "scripts/generate_api_clients.py"
    environment = {**programs.environment(tmp_path, "nobody@example.com"), "PATH": os.environ["PATH"]}
    done = programs.run([sys.executable, str(script), str(tmp_path / "made")], environment)
    assert done.exit_code == 0, str(done)
    assert {each.name for each in (tmp_path / "made").iterdir()} >= {"gateway_api", "gateway_api.d.ts", "openapi.json"}
