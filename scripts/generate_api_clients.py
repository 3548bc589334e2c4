"""Generates a Python and a TypeScript client of /api from its OpenAPI document.

    python scripts/generate_api_clients.py FOLDER

FOLDER gets the document (`openapi.json`), the package `gateway_api` for Python, which needs httpx and attrs, and the
types `gateway_api.d.ts`, with which openapi-fetch makes typed requests. The generators are those of
scripts/install_test_vendors.sh, as locked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_GENERATOR = ROOT / ".venv-clients/openapi_python_client/bin/openapi-python-client"
TYPESCRIPT_GENERATOR = ROOT / "tests/clients/node_modules/openapi-typescript/bin/cli.js"
PACKAGE = "gateway_api"
# The hooks would format the code with programs of the machine.
CONFIG = json.dumps({"package_name_override": PACKAGE, "post_hooks": []})


def write_document(folder: Path) -> Path:
    """The document of this source, as /api/schema serves it."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from gateway.site.api_docs import document

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "openapi.json"
    path.write_text(json.dumps(document(), indent=1))
    return path


def generate_python(document: Path) -> Path:
    """The package beside the document. Raises: subprocess.CalledProcessError."""
    target, config = document.parent / PACKAGE, document.parent / "openapi-python-client.json"
    config.write_text(CONFIG)
    command = [str(PYTHON_GENERATOR), "generate", "--path", str(document), "--output-path", str(target)]
    _run(*command, "--meta", "none", "--overwrite", "--fail-on-warning", "--config", str(config))
    return target


def generate_typescript(document: Path, node: str) -> Path:
    """The types beside the document. Raises: subprocess.CalledProcessError."""
    target = document.parent / f"{PACKAGE}.d.ts"
    _run(node, str(TYPESCRIPT_GENERATOR), str(document), "--output", str(target), "--root-types")
    return target


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()


def main() -> int:
    """Generate both. Returns the exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write(__doc__ or "")
        return 2
    node = shutil.which("node")
    if not PYTHON_GENERATOR.exists() or node is None or not TYPESCRIPT_GENERATOR.exists():
        sys.stderr.write("A generator is missing. Run: sh scripts/install_test_vendors.sh\n")
        return 1
    document = write_document(Path(sys.argv[1]).resolve())
    generate_python(document)
    generate_typescript(document, node)
    return 0


if __name__ == "__main__":
    sys.exit(main())
