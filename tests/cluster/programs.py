"""Helm, and the check of objects against the schemas of Kubernetes, as `.venv-cluster` has them."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-cluster"
CHART = ROOT / "deploy" / "chart"


def has_programs() -> bool:
    return (FOLDER / "bin" / "kubernetes-validate").exists()


def helm_program() -> Path:
    """The path of helm, taken out of its package once: from a zip file in a tar file."""
    program = FOLDER / "bin" / "helm"
    if not program.exists():
        packed = next(FOLDER.rglob("lambda-layer-kubectl-*.jsii.tgz"))
        with tarfile.open(packed) as package:
            layer = next(member for member in package.getmembers() if member.name.endswith("layer.zip"))
            content = package.extractfile(layer)
            assert content is not None
            with zipfile.ZipFile(io.BytesIO(content.read())) as files:
                made = program.with_name(f"helm.{os.getpid()}")
                made.write_bytes(files.read("helm/helm"))
        made.chmod(0o755)
        made.rename(program)  # at once, for processes that look at the same time
    return program


def helm(*arguments: str, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run helm on the chart with `values` on standard input."""
    command = [str(helm_program()), *arguments, str(CHART), "--values", "-"]
    return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60)


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that the chart makes of `values`, hooks too."""
    done = helm("template", "gw", "--namespace", "prod", values=values)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def refusal(values: dict[str, Any]) -> str:
    """The words with which the chart refuses `values`; empty when it takes them."""
    done = helm("template", "gw", values=values)
    return "" if done.returncode == 0 else done.stderr


def faults(objects: list[dict[str, Any]], version: str, folder: Path) -> str:
    """The misfits of `objects` with the schemas of Kubernetes `version`, which know no objects of other programs."""
    file = folder / f"objects-{version}.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    command = [
        str(FOLDER / "bin" / "kubernetes-validate"),
        "--strict",
        "--quiet",
        "--no-warn",
        "-k",
        version,
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else done.stdout + done.stderr
