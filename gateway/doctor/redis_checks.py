"""Redis: both servers, if the queue has one of its own. No address is shown, because it holds the password."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis
from django.conf import settings

from gateway.doctor.verdict import Finding, error, ok, warning

ANSWER_S = 3.0


def addresses() -> Mapping[str, str]:
    """By the variable that names it."""
    from gateway.settings.workers import QUEUE_REDIS_URL

    found = {"REDIS_URL": settings.REDIS_URL, "QUEUE_REDIS_URL": QUEUE_REDIS_URL}
    if found["QUEUE_REDIS_URL"] == found["REDIS_URL"]:
        del found["QUEUE_REDIS_URL"]
    return {name: url for name, url in found.items() if url}


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S)


def reachable() -> Sequence[Finding]:
    if not settings.REDIS_URL:
        return [ok("REDIS_URL is not set: limits and revocations are shared on this host only.")]
    return [_answer(name, url) for name, url in addresses().items()]


def _answer(name: str, url: str) -> Finding:
    try:
        with closing(client(url)) as server:
            server.ping()
            facts = _information(server)
    except (redis.RedisError, OSError, ValueError) as fault:
        if (refused := _refused_certificate(fault)) is not None:
            return error(f"The certificate of the Redis at {name} is refused: {refused.verify_message}.")
        return error(f"The Redis at {name} does not answer ({type(fault).__name__}).")
    return ok(f"{product(facts)} at {name} answers.")


def product(facts: Mapping[str, Any]) -> str:
    """Name and version. Valkey also says which Redis it was once equal to."""
    if "valkey_version" in facts:
        return f"Valkey {facts['valkey_version']}"
    return f"Redis {facts.get('redis_version', 'of an unknown version')}"


def _refused_certificate(fault: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while fault is not None and not isinstance(fault, ssl.SSLCertVerificationError):
        fault = fault.__cause__ or fault.__context__
    return fault


def configured() -> Sequence[Finding]:
    """Role, memory, persistence, cluster."""
    found: list[Finding] = []
    for name, facts in _all_information():
        found += judged(name, facts, expects_cluster=settings.REDIS_CLUSTER and name == "REDIS_URL")
    if settings.REDIS_URL and not found:
        return [ok("Redis takes writes, keeps all keys and writes them to its disk.")]
    return found


def judged(name: str, facts: Mapping[str, Any], *, expects_cluster: bool) -> list[Finding]:
    found = []
    if facts.get("role") in {"slave", "replica"}:
        found.append(error(f"The Redis at {name} is a replica and takes no writes. Name the primary."))
    if int(facts.get("cluster_enabled", 0)) and not expects_cluster:
        remedy = "Set REDIS_CLUSTER" if name == "REDIS_URL" else "The queue needs a Redis that is not a cluster"
        found.append(error(f"The Redis at {name} is a cluster, which refuses the commands of calls. {remedy}."))
    policy = str(facts.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        found.append(
            error(f"The Redis at {name} has maxmemory-policy {policy}: it drops counters and messages. Use noeviction.")
        )
    if str(facts.get("maxmemory", "unknown")) == "0":
        found.append(warning(f"The Redis at {name} has no maxmemory: it may take all memory of its host."))
    if not int(facts.get("aof_enabled", 0)) and not int(facts.get("saves_snapshots", 0)):
        found.append(
            warning(f"The Redis at {name} writes nothing to its disk: after a restart all limits start again at zero.")
        )
    return found


def tls() -> Sequence[Finding]:
    """Celery's client checks certificates only when the address says so."""
    found = []
    for name, url in addresses().items():
        parts = urlsplit(url)
        if parts.scheme == "rediss" and parse_qs(parts.query).get("ssl_cert_reqs") != ["required"]:
            found.append(
                error(
                    f"{name} is rediss:// without ?ssl_cert_reqs=required: the worker accepts any certificate, and"
                    " anyone in between can read the password."
                )
            )
        elif parts.scheme == "redis" and not parts.password and parts.hostname not in _HERE:
            found.append(warning(f"{name} names another host without TLS and without a password."))
    if settings.REDIS_URL and not found:
        return [ok("Connections to Redis are local, or have a password or TLS with certificates.")]
    return found


_HERE = {"127.0.0.1", "::1", "localhost", None}


def _all_information() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, url in addresses().items():
        with closing(client(url)) as server:
            yield name, _information(server)


def _information(server: redis.Redis) -> dict[str, Any]:
    facts: dict[str, Any] = dict(server.info())  # type: ignore[arg-type]
    try:
        facts["saves_snapshots"] = int(bool(server.config_get("save").get("save")))  # type: ignore[union-attr]
    except redis.RedisError:  # managed servers refuse CONFIG; their snapshots are their own affair
        facts["saves_snapshots"] = 1
    return facts
