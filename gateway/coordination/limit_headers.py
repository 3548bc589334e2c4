"""Pure: an admission as response headers, and the sentence of a refusal. Spec: D19"""

from __future__ import annotations

from gateway.coordination.store import Admission

# `RateLimit` as in the IETF draft, `X-RateLimit` as at GitHub.
_NAMES = ("RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_REST = b'"%b";r=%d;t=%d'


def encoded(admission: Admission) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI takes them, without `Retry-After`."""
    rule = admission.rule
    reset_s = admission.retry_after_s or rule.window_s
    name = rule.name.encode()
    # Written out: every call passes here.
    return [
        (b"ratelimit-policy", b'"%b";q=%d;w=%d' % (name, rule.limit, rule.window_s)),
        (b"ratelimit", _REST % (name, admission.remaining, reset_s)),
        (b"x-ratelimit-limit", b"%d" % rule.limit),
        (b"x-ratelimit-remaining", b"%d" % admission.remaining),
        (b"x-ratelimit-reset", b"%d" % reset_s),
    ]


def headers(admission: Admission) -> dict[str, str]:
    """Headers as text, with `Retry-After` on a refusal."""
    found = {name: value.decode() for name, (_, value) in zip(_NAMES, encoded(admission), strict=True)}
    return found if admission.allowed else {**found, "Retry-After": found["X-RateLimit-Reset"]}


def refusal_in_bytes(admission: Admission, unit_bytes: int) -> dict[str, str]:
    """Headers of a refusal by a window that counts units of `unit_bytes`."""
    wait_s = admission.retry_after_s
    if admission.epochs is None:  # only this process's share
        return {"Retry-After": str(wait_s)}
    rule, name = admission.rule, admission.rule.name.encode()
    policy = b'"%b";q=%d;qu="content-bytes";w=%d' % (name, rule.limit * unit_bytes, rule.window_s)
    rest = _REST % (name, admission.remaining * unit_bytes, wait_s)
    return {"Retry-After": str(wait_s), "RateLimit-Policy": policy.decode(), "RateLimit": rest.decode()}


def refusal_text(retry_after_s: int) -> str:
    return f"Too many requests. Try again in {retry_after_s} s."
