"""Refresh gateway/static/vendor from pinned npm packages: fetch, verify, copy, then write what of them the pages use.

Run it from the repository root after changing a pin below; the result is committed, so neither a developer nor the
image build needs Node. Packages come through the `npm pack` command, hence from whatever registry npm is configured
for, and nothing is unpacked before its sha512 equals the one written here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USED_ASSETS = ROOT / "scripts" / "used_assets.py"
VENDOR_DIR = ROOT / "gateway" / "static" / "vendor"
SOURCE_DIR = ROOT / "scripts" / "sources"
CHECKSUMS = "SHA256SUMS"
NPM_DEADLINE_S = 180
MAX_MEMBER_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Package:
    """One pinned npm package; `files` maps a member of its tarball to the name it gets here.

    `sources` are files that no browser loads: something is made of them.
    """

    name: str
    version: str
    integrity: str
    files: dict[str, str]
    sources: dict[str, str] = field(default_factory=dict)
    icons: tuple[str, ...] = field(default=())

    @property
    def directory(self) -> str:
        """Folder under static/vendor; the version in the path is what lets browsers cache it for good."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"


ICONS = tuple(
    """
    activity adjustments-horizontal alert-circle alert-triangle api apps arrow-down arrow-left arrow-right arrow-up
    arrows-sort ban bell bolt book brand-vscode building building-community calendar chart-bar chart-line check
    chevron-down chevron-left chevron-right chevron-up circle-check circle-dashed circle-dot circle-minus circle-x
    clipboard-list clock code coin copy credit-card database device-desktop device-laptop dots dots-vertical download
    external-link eye eye-off file-text filter fingerprint heartbeat help-circle history home hourglass info-circle key
    keyboard layout-dashboard layout-grid link list-check list-search loader-2 lock login logout mail map-pin menu-2
    message-circle minus moon package pencil player-pause player-play plug plug-connected plug-off plus qrcode refresh
    robot rotate-clockwise route search send server settings shield-check shield-lock shield-x sitemap stack-2 sun
    table tag terminal-2 tool trash unlink user user-minus user-plus users users-group world x
    """.split()
)

PACKAGES = (
    Package(
        name="bootstrap",
        version="5.3.8",
        integrity="sha512-HP1SZDqaLDPwsNiqRqi5NcP0SSXciX2s9E+RyqJIIqGo+vJeN5AJVM98CXmW/Wux0nQ5L7jeWUdplCEf0Ee+tg==",
        files={"LICENSE": "LICENSE"},
        sources={"dist/css/bootstrap.min.css": "bootstrap.min.css"},
    ),
    Package(
        name="uplot",
        version="1.6.32",
        integrity="sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        files={
            "dist/uPlot.iife.min.js": "uPlot.iife.min.js",
            "dist/uPlot.min.css": "uPlot.min.css",
            "LICENSE": "LICENSE",
        },
    ),
    Package(
        name="@tabler/icons",
        version="3.51.0",
        integrity="sha512-0pinvPZz7YeX+OSfxuEAbnEPWbocVXW5iU8h5lh41pYG8sZuQfpWECC980lxOT0clGIcNGn8xsBr+zKaRGdA/g==",
        files={"LICENSE": "LICENSE"},
        icons=ICONS,
    ),
)


class VendorError(Exception):
    """A package is not what the pin says, or lacks a file that is needed."""


def check_integrity(content: bytes, *, integrity: str) -> None:
    """Return only when `content` has the subresource-integrity value `integrity` (sha512 alone is accepted).

    Raises: VendorError.
    """
    algorithm, _, expected = integrity.partition("-")
    if algorithm != "sha512":
        raise VendorError(f"integrity must be sha512, not {algorithm!r}")
    actual = base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")
    if not hmac.compare_digest(actual, expected):
        raise VendorError(f"integrity mismatch: expected sha512-{expected}, got sha512-{actual}")


def without_source_map(content: bytes) -> bytes:
    """Drop the trailing sourceMappingURL comment: hashed static storage refuses a map that is not there."""
    return re.sub(rb"\s*(?:/\*# sourceMappingURL=\S+ \*/|//# sourceMappingURL=\S+)\s*\Z", b"\n", content)


def svg_symbol(name: str, svg: str) -> str:
    """Turn one 24 by 24 outline icon into a `<symbol>` that inherits stroke and fill from where it is used.

    Raises: VendorError when the drawing holds anything but plain shapes.
    """
    match = re.search(r"<svg[^>]*>(.*)</svg>", svg, flags=re.DOTALL)
    if match is None:
        raise VendorError(f"icon {name}: no drawing found")
    shapes = re.findall(r"<[^>]+>", match.group(1))
    foreign = [shape for shape in shapes if not re.match(r"<(?:path|circle|line|rect|polyline)\s[^>]*/>\Z", shape)]
    drawing = "".join(re.sub(r"\s+/>\Z", "/>", shape) for shape in shapes if 'stroke="none"' not in shape)
    if foreign or not drawing:
        raise VendorError(f"icon {name}: not a plain outline: {foreign or 'empty'}")
    return f'<symbol id="{name}" viewBox="0 0 24 24">{drawing}</symbol>'


def build_sprite(icons: dict[str, str]) -> bytes:
    """Return one SVG file with a symbol per icon, sorted by name so that a rebuild is byte-identical."""
    symbols = "\n".join(svg_symbol(name, icons[name]) for name in sorted(icons))
    return f'<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}\n</svg>\n'.encode()


def fetch(package: Package, *, into: Path) -> Path:
    """Download the tarball of `package` with npm and return its path; install scripts never run."""
    spec = f"{package.name}@{package.version}"
    command = ["npm", "pack", spec, "--ignore-scripts", "--silent", "--pack-destination", str(into)]
    subprocess.run(command, check=True, cwd=into, stdout=subprocess.DEVNULL, timeout=NPM_DEADLINE_S)
    tarballs = list(into.glob("*.tgz"))
    if len(tarballs) != 1:
        raise VendorError(f"{spec}: npm pack left {len(tarballs)} tarballs, expected one")
    return tarballs[0]


def read_member(archive: tarfile.TarFile, path: str) -> bytes:
    """Return the bytes of one regular file of an npm tarball (all of it lies under `package/`)."""
    try:
        member = archive.getmember(f"package/{path}")
    except KeyError:
        raise VendorError(f"{path} is not in the package") from None
    stream = archive.extractfile(member) if member.isreg() and member.size <= MAX_MEMBER_BYTES else None
    if stream is None:
        raise VendorError(f"{path} is not a regular file of at most {MAX_MEMBER_BYTES} bytes")
    return stream.read()


def install(package: Package, *, vendor_dir: Path, source_dir: Path) -> list[Path]:
    """Replace the folders of `package` with freshly verified files and return those that browsers load."""
    with tempfile.TemporaryDirectory() as scratch:
        tarball = fetch(package, into=Path(scratch))
        check_integrity(tarball.read_bytes(), integrity=package.integrity)
        with tarfile.open(tarball, mode="r:gz") as archive:
            contents = contents_of(archive, package.files)
            sources = contents_of(archive, package.sources)
            if package.icons:
                drawings = {name: read_member(archive, f"icons/outline/{name}.svg").decode() for name in package.icons}
                sources["sprite.svg"] = build_sprite(drawings)
    if sources:
        replace_folder(source_dir / package.directory, sources)
    return replace_folder(vendor_dir / package.directory, contents)


def contents_of(archive: tarfile.TarFile, files: dict[str, str]) -> dict[str, bytes]:
    """The bytes of each file by the name that it gets here."""
    return {target: without_source_map(read_member(archive, source)) for source, target in files.items()}


def replace_folder(directory: Path, contents: dict[str, bytes]) -> list[Path]:
    """The folder holds `contents` and nothing else; their paths."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for target, content in contents.items():
        (directory / target).write_bytes(content)
    return [directory / target for target in sorted(contents)]


def checksum_lines(paths: list[Path], *, vendor_dir: Path) -> str:
    """Return sha256sum-compatible lines, sorted by path, so that a hand-edited vendor file is noticed."""
    lines = sorted((path.relative_to(vendor_dir).as_posix(), hashlib.sha256(path.read_bytes())) for path in paths)
    return "".join(f"{digest.hexdigest()}  {name}\n" for name, digest in lines)


def remove_other_versions(packages: tuple[Package, ...], *, vendor_dir: Path) -> None:
    """Delete folders of versions that are no longer pinned."""
    kept = {package.directory for package in packages}
    for directory in vendor_dir.iterdir():
        if directory.is_dir() and directory.name not in kept:
            shutil.rmtree(directory)


def main() -> int:
    """Refresh every pinned package; exit status 1 with one line when a pin does not hold."""
    paths: list[Path] = []
    try:
        for package in PACKAGES:
            paths += install(package, vendor_dir=VENDOR_DIR, source_dir=SOURCE_DIR)
    except (VendorError, subprocess.SubprocessError, OSError, tarfile.TarError) as error:
        print(f"vendor_assets: {package.name}@{package.version}: {error}", file=sys.stderr)
        return 1
    for directory in (VENDOR_DIR, SOURCE_DIR):
        remove_other_versions(PACKAGES, vendor_dir=directory)
    (VENDOR_DIR / CHECKSUMS).write_text(checksum_lines(paths, vendor_dir=VENDOR_DIR), encoding="utf-8")
    for path in paths:
        print(f"{path.stat().st_size:>8}  {path.relative_to(ROOT)}")
    return subprocess.run([sys.executable, str(USED_ASSETS)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
