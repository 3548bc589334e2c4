"""`make image`: builds the image, examines it, and writes sbom.json and licenses.txt beside it, into ./dist.

[--twice]: builds it again from nothing and compares the files; layers that differ are named. Exit codes: 0 good, 1 the
image breaks a rule.

Variables: IMAGE (gateway:local), ENGINE (docker if it answers, else podman), PYTHON_IMAGE and RELEASE=1 (the base by
digest, without which a release is refused), EXTRAS (aws: with that part, and without a bound of the size),
BUILD_OPTIONS (further options of the engine's build), AUDIT (0: do not ask for known vulnerabilities; 1: fail where
they cannot be asked for).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import audit_dependencies  # noqa: E402
import image_inventory  # noqa: E402
from vendor_assets import PACKAGES  # noqa: E402

from gateway.lib.build_info import BuildInfo, build_arguments, current  # noqa: E402

OUT = ROOT / "dist"
MAX_BYTES = 250_000_000
BUILD_S, PROBE_S = 1800, 120
# The licence of each package in scripts/vendor_assets.py, whose file lies beside what browsers get.
ASSET_LICENCE = "MIT"


class Failed(Exception):
    """A program of the engine failed. The text is its last line."""


def engine(environ: Mapping[str, str]) -> str:
    """Raises: Failed where none answers. A client of docker may be installed without a server that builds."""
    found = environ.get("ENGINE") or next((name for name in ("docker", "podman") if _answers(name)), "")
    if not found:
        raise Failed("Neither docker nor podman answers.")
    return found


def _answers(name: str) -> bool:
    if shutil.which(name) is None:
        return False
    try:
        return subprocess.run([name, "info"], capture_output=True, check=False, timeout=PROBE_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def labels(info: BuildInfo) -> dict[str, str]:
    """Pure: those of the image that tell one build from another."""
    return {
        "org.opencontainers.image.version": info.version,
        "org.opencontainers.image.revision": info.commit,
        "gateway.schema": info.schema,
    }


def build_command(name: str, tag: str, info: BuildInfo, made_at: int, environ: Mapping[str, str]) -> list[str]:
    """Pure: builds `tag`. Files get the time of the commit."""
    command = [name, "build", *build_arguments(info).split(), "--tag", tag]
    # podman takes a label from its cache although the argument in it has changed.
    command += [word for label, value in labels(info).items() for word in ("--label", f"{label}={value}")]
    if Path(name).name == "podman":
        # OCI's own format has no health check.
        command += ["--format", "docker", "--timestamp", str(made_at)]
    else:
        command += ["--output", "type=docker,rewrite-timestamp=true"]
        command += ["--build-arg", f"SOURCE_DATE_EPOCH={made_at}"]
    for variable in ("PYTHON_IMAGE", "RELEASE", "EXTRAS"):
        if environ.get(variable):
            command += ["--build-arg", f"{variable}={environ[variable]}"]
    return [*command, *shlex.split(environ.get("BUILD_OPTIONS", "")), str(ROOT)]


def run(command: Sequence[str], deadline_s: int, text: str | None = None, shown: bool = False) -> str:
    """The output of a program. Raises: Failed."""
    ran = subprocess.run(
        command,
        input=text,
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.PIPE,
        text=True,
        timeout=deadline_s,
        check=False,
    )
    if ran.returncode != 0:
        raise Failed(f"{shlex.join(command[:3])} …: {(ran.stderr or f'exit code {ran.returncode}').strip()}")
    return ran.stdout or ""


def checked_out(is_release: bool) -> tuple[BuildInfo, int]:
    """The build, and the seconds since 1970 of its commit; 0 outside a repository. Raises: Failed."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit, seconds = run([*git, "log", "-1", "--format=%H %ct"], PROBE_S).split()
        is_changed = bool(run([*git, "status", "--porcelain"], PROBE_S))
    except (Failed, OSError):
        commit, seconds, is_changed = current().commit, "0", True
    if is_release and is_changed:
        raise Failed("A release is made of a commit, without changed files.")
    return replace(current(), commit=commit), int(seconds)


def locked(environ: Mapping[str, str]) -> str:
    """The lock files of the image, as one."""
    names = ["requirements", *([f"requirements-{environ['EXTRAS']}"] if environ.get("EXTRAS") else [])]
    return "".join((ROOT / f"{name}.lock").read_text(encoding="utf-8") for name in names)


def inspect(name: str, tag: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run([name, "image", "inspect", tag], PROBE_S))[0]
    return found


def probe(name: str, tag: str) -> dict[str, Any]:
    """The output of image_inventory.PROBE inside the image, under the bounds of a deployment."""
    bounds = ["--rm", "--interactive", "--network=none", "--read-only", "--cap-drop=all"]
    program = ["--entrypoint", "python", tag, "-B", "-", *image_inventory.ABSENT]
    found: dict[str, Any] = json.loads(run([name, "run", *bounds, *program], PROBE_S, image_inventory.PROBE))
    return found


def tree(name: str, tag: str) -> dict[str, Any]:
    """The output of image_inventory.TREE inside the image, as root: some folders are for one user."""
    bounds = ["--rm", "--interactive", "--network=none", "--read-only", "--user=0:0"]
    program = ["--entrypoint", "python", tag, "-B", "-", "/"]
    found: dict[str, Any] = json.loads(run([name, "run", *bounds, *program], PROBE_S, image_inventory.TREE))
    return found


def label_faults(inspected: Mapping[str, Any], info: BuildInfo) -> list[str]:
    """Sentences about labels and size."""
    given = inspected["Config"].get("Labels") or {}
    found = [f"The label {name} is not {value}." for name, value in labels(info).items() if given.get(name) != value]
    if inspected["Size"] > MAX_BYTES and not os.environ.get("EXTRAS"):
        found.append(f"The image has {inspected['Size']:,} bytes, more than {MAX_BYTES:,}.")
    return found


def vulnerabilities(parts: Sequence[image_inventory.Part], asked: str) -> list[str]:
    """Sentences about Python packages with known vulnerabilities, and about an audit that was demanded in vain."""
    if asked == "0":
        return []
    packages = [(part.name, part.version) for part in parts if part.kind == "pypi"]
    try:
        known = audit_dependencies.advisories(packages, os.environ.get("OSV_URL") or audit_dependencies.OSV_URL)
    except audit_dependencies.NotAsked as fault:
        print(f"The {len(packages)} Python packages were not audited: {fault}")
        return ["Known vulnerabilities could not be asked for."] if asked == "1" else []
    print(audit_dependencies.report(known, ["the image"]))
    return [f"{name} {version} has known vulnerabilities: {', '.join(ids)}." for (name, version), ids in known.items()]


def examine(name: str, tag: str, info: BuildInfo, made_at: int) -> list[str]:
    """The files beside the image are written. Returns its faults, one sentence each."""
    inspected, found = inspect(name, tag), probe(name, tag)
    lock = locked(os.environ)
    assets = [(package.name, package.version, ASSET_LICENCE) for package in PACKAGES]
    parts = image_inventory.parts_of(found, lock, assets)
    OUT.mkdir(exist_ok=True)
    bill = image_inventory.bill_of_materials(
        parts,
        version=info.version,
        commit=info.commit,
        release=found["release"],
        at=datetime.fromtimestamp(made_at, UTC),
    )
    (OUT / "sbom.json").write_text(bill, encoding="utf-8")
    (OUT / "licenses.txt").write_text(image_inventory.licence_list(parts), encoding="utf-8")
    print(f"{tag}: {inspected['Size'] / 1e6:.0f} MB; {len(parts)} parts in dist/sbom.json and dist/licenses.txt")
    return [
        *label_faults(inspected, info),
        *image_inventory.faults_of(found),
        *image_inventory.drift(lock, found),
        *vulnerabilities(parts, os.environ.get("AUDIT", "")),
    ]


def differing_layers(first: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Pure: a sentence for each layer that another build made differently."""
    layers, others = first["RootFS"]["Layers"], again["RootFS"]["Layers"]
    if len(layers) != len(others):
        return [f"One build has {len(layers)} layers, the other {len(others)}."]
    pairs = enumerate(zip(layers, others, strict=True), start=1)
    return [f"Layer {number} differs: {one}, {other}." for number, (one, other) in pairs if one != other]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twice", action="store_true", help="build again and compare")
    options = parser.parse_args()
    tag = os.environ.get("IMAGE") or "gateway:local"
    try:
        info, made_at = checked_out(bool(os.environ.get("RELEASE")))
        name = engine(os.environ)
        run(build_command(name, tag, info, made_at, os.environ), BUILD_S, shown=True)
        faults = examine(name, tag, info, made_at)
        if options.twice:
            again = f"{tag}-again"
            command = build_command(name, again, info, made_at, os.environ)
            run([*command[:2], "--no-cache", *command[2:]], BUILD_S, shown=True)
            print("\n".join(differing_layers(inspect(name, tag), inspect(name, again))) or "All layers are the same.")
            paths = image_inventory.differing_files(tree(name, tag), tree(name, again))
            faults += [f"{path} differs from build to build." for path in paths]
            run([name, "image", "rm", again], PROBE_S)
    except (Failed, subprocess.TimeoutExpired) as fault:
        faults = [str(fault)]
    print("\n".join([*faults, f"{len(faults)} faults"] if faults else ["The image keeps its rules."]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
