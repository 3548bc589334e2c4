"""Pure: warnings about this start's variables."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.supervisor.options import WILDCARD_HOSTS, Options


def start_notes(options: Options, environ: Mapping[str, str]) -> list[str]:
    """One sentence for each variable with a surprising effect."""
    notes = []
    if options.web_processes > 1 and not options.has_redis:
        notes.append(f"WEB_PROCESSES={options.web_processes} needs REDIS_URL; one web process is started.")
    if options.demo and not options.is_loopback:
        notes.append(
            f"HOST={options.host}: anyone who reaches this machine can sign in to the demo as anyone. "
            "Use DEMO=0 outside a network you trust."
        )
    if not options.is_loopback and options.host not in WILDCARD_HOSTS and not environ.get("BASE_URL"):
        notes.append(f"HOST={options.host}: set BASE_URL too; pages and tokens still name {options.base_url}.")
    return notes
