"""Sends inputs in batches, and counts what is answered."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import psutil

from gateway.http_protocol import PROBE_PATHS
from tests.attacks.refusals import refused
from tests.attacks.wire import Sent
from tests.attacks.world import World
from tests.fuzz.memory import resident_mib
from tests.fuzz.requests import Maker

AT_ONCE = 8
# The vendor is well, so 502 would be ours. This deployment takes no payments, and its identity provider is away.
AWAY = {"/api/": "billing_unavailable", "/oidc/": "temporarily_unavailable"}
REMAKE_EVERY = 4_000
# Templates, the search of the documentation and caches up to their bounds fill while a run is young: what a leak takes,
# it takes in the second half too.
WARM_SHARE = 0.5


@dataclass
class Figures:
    """`wrong` has a line for each answer that is not documented, at most so many."""

    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    took_s: float = 0.0
    rss_mib: list[float] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        return self.counts.total()

    @property
    def grown_mib(self) -> float:
        """From the end of the warm-up to the end of the run."""
        warm = self.rss_mib[int(len(self.rss_mib) * WARM_SHARE)] if self.rss_mib else 0.0
        return (self.rss_mib[-1] - warm) if self.rss_mib else 0.0

    def lines(self) -> list[str]:
        """A table of kinds and statuses."""
        kinds = sorted({kind for kind, _ in self.counts})
        found = []
        for kind in kinds:
            statuses = {status: count for (name, status), count in sorted(self.counts.items()) if name == kind}
            said = "  ".join(f"{status}: {count}" for status, count in statuses.items())
            found.append(f"{kind:16} {sum(statuses.values()):7}  {said}")
        memory = f"RSS {self.rss_mib[0]:.0f} to {self.rss_mib[-1]:.0f} MiB, {self.grown_mib:+.0f} in the second half"
        found.append(f"{self.inputs} inputs in {self.took_s:.0f} s, slowest batch {self.slowest_s:.1f} s; {memory}")
        return [*found, *(f"WRONG {line}" for line in self.wrong)]


def fault_of(sent: Sent, answer: httpx.Response) -> str:
    """Why an answer is not a documented one; empty for one that is."""
    status = answer.status_code
    if status >= 500:
        says_so = any(
            answer.extensions["path"].startswith(prefix) and _error(answer) == error for prefix, error in AWAY.items()
        )
        return "" if status == 503 and says_so else f"{status}: {answer.text[:200]}"
    if status < 400 or sent.method == "HEAD":
        return ""
    if answer.extensions["path"] in PROBE_PATHS:
        return ""  # their answers are for load balancers
    try:
        refused(answer, status, _error(answer), said=sent.body)
    except (AssertionError, KeyError, ValueError) as fault:
        return f"{status} in another shape: {type(fault).__name__} {str(fault)[:300]}"
    return ""


def _error(answer: httpx.Response) -> object:
    """The error of the body, wherever the route's shape has it."""
    try:
        body = json.loads(answer.content)
    except ValueError:
        return None
    found = body.get("error") if isinstance(body, dict) else None
    return found.get("code") if isinstance(found, dict) else found


def run(
    world: World, make: Callable[[], Maker], inputs: int, note: Callable[[str], None] = lambda line: None
) -> Figures:
    """So many inputs, each kind by its share."""
    figures, maker, process = Figures(), make(), psutil.Process()
    kinds = maker.kinds()
    began_s = time.monotonic()
    while figures.inputs < inputs:
        if figures.inputs and figures.inputs % REMAKE_EVERY < AT_ONCE:
            maker = make()
            kinds = maker.kinds()
        names = maker.chance.random.choices(list(kinds), [share for _, share in kinds.values()], k=AT_ONCE)
        sent = [kinds[name][0]() for name in names]
        batch_s = time.monotonic()
        answers = world.wire.at_once(*sent)
        figures.slowest_s = max(figures.slowest_s, time.monotonic() - batch_s)
        for name, each, answer in zip(names, sent, answers, strict=True):
            figures.counts[name, answer.status_code] += 1
            fault = fault_of(each, answer)
            if fault and len(figures.wrong) < 200:
                figures.wrong.append(f"{each.method} {each.target[:200]!r} {each.body[:300]!r} {each.headers}: {fault}")
        if figures.inputs % (AT_ONCE * 100) < AT_ONCE:
            figures.rss_mib.append(resident_mib(process))
            note(f"{figures.inputs} inputs, {len(figures.wrong)} wrong, RSS {figures.rss_mib[-1]:.0f} MiB")
    figures.rss_mib.append(resident_mib(process))
    figures.took_s = time.monotonic() - began_s
    return figures
