"""The contents of an image, as `make image` reports them: a CycloneDX bill of materials and a list of licences.

`PROBE` is the program that runs inside the image and prints what this module reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

Kind = Literal["pypi", "deb", "npm", "generic"]
NOT_STATED = "not stated"
_CLASSIFIER = "License :: OSI Approved :: "
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

# Programs that an image must lack: their work is done while it is built.
ABSENT = ("gcc", "cc", "g++", "make", "ld", "pip", "pip3", "apt", "apt-get", "dpkg", "perl", "su", "mount", "curl")
PROBE = """
import json, os, platform, re, shutil, subprocess, sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

def debian():
    try:
        stanzas = Path("/var/lib/dpkg/status").read_text().split("\\n\\n")
    except OSError:
        return
    for stanza in stanzas:
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", stanza, flags=re.M))
        if "Package" in fields:
            yield fields

def notice(name):
    try:
        return Path(f"/usr/share/doc/{name}/copyright").read_text(errors="replace")
    except OSError:
        return ""

def unlinked():
    [loader, *_] = sorted(Path("/").glob("lib*/ld-linux*"))
    # Wheels bring libraries that find each other by paths of their own.
    modules = (*Path("/usr").glob("l*/**/lib-dynload/*.so"), *Path(sys.prefix).rglob("*.so"))
    for path in (*Path("/usr/bin").iterdir(), *modules):
        if path.is_file() and path.open("rb").read(4) == b"\\x7fELF":
            ran = subprocess.run([loader, "--list", path], capture_output=True, text=True)
            if "not found" in ran.stdout + ran.stderr:
                yield str(path)

def lost():
    for each in distributions():
        for file in each.files or ():
            # Tests and words of other languages are left out: scripts/slim_application.sh.
            is_kept = file.suffix in (".py", ".so") and not {"tests", "locale"} & set(file.parts)
            if is_kept and not file.locate().exists():
                yield str(file)

packages = [{
    "name": each.metadata["Name"],
    "version": each.version,
    "expression": each.metadata.get("License-Expression"),
    "license": each.metadata.get("License"),
    "classifiers": each.metadata.get_all("Classifier") or [],
} for each in distributions()]
system = [{
    "name": each["Package"],
    "version": each["Version"],
    "source": each.get("Source", each["Package"]),
    "notice": notice(each["Package"]),
} for each in debian()]
release = dict(re.findall(r'^([A-Z_]+)="?([^"\\n]*)"?$', Path("/etc/os-release").read_text(), flags=re.M))
elevated = [
    str(Path(folder, name))
    for folder, _, names in os.walk("/usr")
    for name in names
    if (found := os.lstat(Path(folder, name))).st_mode & 0o6000
]
json.dump({
    "python": platform.python_version(),
    "packages": packages,
    "system": system,
    "release": release,
    "programs": [name for name in sys.argv[1:] if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")],
    "modules": [name for name in ("pip", "ensurepip", "setuptools") if find_spec(name)],
    "elevated": elevated,
    "lost": sorted(lost()),
    "unlinked": sorted(unlinked()),
    "user": [os.getuid(), os.getgid()],
}, sys.stdout)
"""

# Prints kind, mode, owner and content of each file of an image. The engine itself writes those that are left out.
TREE = """
import hashlib, json, os, stat, sys

ENGINE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab")
top = sys.argv[1]
found = {}
for folder, folders, files in os.walk(top):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ENGINE]
    for name in folders + files:
        path = os.path.join(folder, name)
        if path in ENGINE:
            continue
        kept = os.lstat(path)
        if stat.S_ISLNK(kept.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(kept.st_mode):
            content = hashlib.sha256(open(path, "rb").read()).hexdigest()
        else:
            content = ""
        found[path] = [oct(kept.st_mode), kept.st_uid, kept.st_gid, content]
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A package of the image; `licence` is an SPDX expression or the words of its maker."""

    kind: Kind
    name: str
    version: str
    licence: str
    sha256: tuple[str, ...] = ()  # of the files that its lock allows
    source: str = ""  # Debian's source package


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Pure: name and version of each package of a lock file, with the hashes of its files."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    package = None
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            package = (normal(pin[1]), pin[2])
            found[package] = ()
        if package is not None:
            found[package] += tuple(_HASH.findall(line))
    return found


def drift(lock: str, found: Mapping[str, Any]) -> list[str]:
    """Pure: how the installed packages differ from those of the lock file, one sentence each."""
    wanted = pins(lock).keys()
    installed = {(normal(each["name"]), each["version"]) for each in found["packages"]}
    missing = [f"{name} {version} is locked and not in the image." for name, version in sorted(wanted - installed)]
    return missing + [
        f"{name} {version} is in the image and not locked." for name, version in sorted(installed - wanted)
    ]


def licence_of(package: Mapping[str, Any]) -> str:
    """Pure: the expression if there is one, else the classifiers, else a short text."""
    if package["expression"]:
        return str(package["expression"])
    named = [each.removeprefix(_CLASSIFIER) for each in package["classifiers"] if each.startswith(_CLASSIFIER)]
    if named:
        return "; ".join(named)
    text = str(package["license"] or "").strip()
    return text if text and "\n" not in text and len(text) <= 60 else NOT_STATED


def licences_of_notice(notice: str) -> str:
    """Pure: the licences that a Debian copyright file names, in the order of the alphabet."""
    # Others put the text of the licence where its name belongs.
    named = {found.strip() for found in re.findall(r"^License:[ \t]*([A-Za-z].{0,44})$", notice, flags=re.M)}
    return "; ".join(sorted(named)) or ("its copyright file" if notice else NOT_STATED)


def parts_of(found: Mapping[str, Any], lock: str, assets: Sequence[tuple[str, str, str]]) -> list[Part]:
    """Pure: everything in the image. `assets`: name, version and licence of what browsers get."""
    hashes = pins(lock)
    python = [
        Part("pypi", normal(each["name"]), each["version"], licence_of(each), hashes.get(_key(each), ()))
        for each in found["packages"]
    ]
    system = [
        Part("deb", each["name"], each["version"], licences_of_notice(each["notice"]), source=each["source"])
        for each in found["system"]
    ]
    browser = [Part("npm", name, version, licence) for name, version, licence in assets]
    return sorted([*python, *system, *browser, Part("generic", "python", found["python"], "Python-2.0")])


def _key(package: Mapping[str, Any]) -> tuple[str, str]:
    return normal(package["name"]), package["version"]


def bill_of_materials(
    parts: Sequence[Part], *, version: str, commit: str, release: Mapping[str, str], at: datetime
) -> str:
    """Pure: CycloneDX 1.6 as JSON, the same for the same image."""
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"gateway:{version}:{commit}"))
    bom.metadata.timestamp = at
    bom.metadata.component = Component(
        name="gateway",
        version=version,
        type=ComponentType.CONTAINER,
        bom_ref="gateway",
        properties=[Property(name="commit", value=commit)],
    )
    components = {part: _component(part, release) for part in parts}
    for component in components.values():
        bom.components.add(component)
    bom.register_dependency(bom.metadata.component, components.values())
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(part: Part, release: Mapping[str, str]) -> Component:
    namespace, _, name = part.name.rpartition("/")
    distribution = release.get("ID", "debian") if part.kind == "deb" else namespace or None
    qualifiers = {"distro": f"{release.get('ID')}-{release.get('VERSION_ID')}"} if part.kind == "deb" else None
    purl = PackageURL(part.kind, distribution, name, part.version, qualifiers)
    licences = [] if part.licence == NOT_STATED else [LicenseFactory().make_from_string(part.licence)]
    # The lock allows the files of every platform, one of which is in the image: a hash would be a guess.
    allowed = [HashType(alg=HashAlgorithm.SHA_256, content=part.sha256[0])] if len(part.sha256) == 1 else []
    return Component(
        name=name,
        group=namespace or None,
        version=part.version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=licences,
        hashes=allowed,
    )


def differing_files(first: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Pure: the paths at which two outputs of TREE differ."""
    return sorted(path for path in first.keys() | again.keys() if first.get(path) != again.get(path))


def licence_list(parts: Sequence[Part]) -> str:
    """Pure: a line for each part."""
    widths = [max(len(getattr(part, name)) for part in parts) for name in ("kind", "name", "version")]
    lines = (
        f"{part.kind:{widths[0]}}  {part.name:{widths[1]}}  {part.version:{widths[2]}}  {part.licence}"
        for part in parts
    )
    return "".join(f"{line}\n" for line in lines)


def faults_of(found: Mapping[str, Any]) -> list[str]:
    """Pure: contents that a finished image must not have, one sentence each."""
    programs = [f"{name} is in the image." for name in found["programs"]]
    modules = [f"Python can import {name}." for name in found["modules"]]
    elevated = [f"{path} runs with the rights of its owner." for path in found["elevated"]]
    unlinked = [f"{path} lacks a library." for path in found["unlinked"]]
    lost = [f"{path} of a package is not there." for path in found["lost"]]
    user = [] if found["user"] == [10001, 10001] else [f"The image runs as {found['user']}."]
    return programs + modules + elevated + unlinked + lost + user
