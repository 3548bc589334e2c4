"""The images of a deployment: those of Debian's packages stand in where HOMES_… names no others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.homes.engine import Engine

FOLDER = Path(__file__).with_name("images")
PREFIX = "localhost/gateway-homes"
# A build has no cgroups of its own here, and finds packages as this host does.
HOST_BUILD = ["--isolation=chroot", "--network=host"]
HOST_FILES = ("/etc/pip.conf", "/etc/ssl/certs")


def build_options() -> list[str]:
    """Options of `podman build` on this host."""
    return HOST_BUILD + [word for path in HOST_FILES if Path(path).exists() for word in ("-v", f"{path}:{path}:ro")]


@dataclass(frozen=True)
class Images:
    python: str
    postgres: str
    redis: str
    caddy: str

    def variables(self) -> dict[str, str]:
        """As `.env` names them."""
        return {"POSTGRES_IMAGE": self.postgres, "REDIS_IMAGE": self.redis, "CADDY_IMAGE": self.caddy}


def images(engine: Engine) -> Images:
    """Those of HOMES_PYTHON_IMAGE and so on, or stand-ins, which are made once."""
    given = {name: os.environ.get(f"HOMES_{name.upper()}_IMAGE", "") for name in Images.__annotations__}
    python = given["python"] or f"{PREFIX}/python:3.11"
    if not given["python"] and not _is_there(python):
        engine.run("bash", str(FOLDER / "base.sh"), "podman", python)
    found = {"python": python}
    for name in ("postgres", "redis", "caddy"):
        found[name] = given[name] or f"{PREFIX}/{name}:2"
        if not given[name] and not _is_there(found[name]):
            target = ["--build-arg", f"BASE={python}", "--target", name, "--tag", found[name]]
            caddy = ["-v", f"{caddy_program()}:/caddy:ro"]
            engine.run("podman", "build", "--format", "docker", *HOST_BUILD, *caddy, *target, str(FOLDER))
    return Images(**found)


def caddy_program() -> Path:
    """As tests/homes/programs.lock brings it."""
    return Path(sys.executable).with_name("caddy")


def _is_there(image: str) -> bool:
    return subprocess.run(["podman", "image", "exists", image], check=False, timeout=60).returncode == 0
