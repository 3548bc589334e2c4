"""Pure: how audit rows name who acted and what was acted on. Labels are snapshots: history does not change on rename.

Spec: §2 Audit entries · D81, D86
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acted: a person's or service account's id, or `system` for background jobs."""

    id: str
    label: str

    def as_actor(self) -> Actor:
        """Itself: services take people and actors alike."""
        return self


@dataclass(frozen=True, slots=True)
class Target:
    """What was acted on."""

    id: str
    label: str


def label_of(subject: str, *names: str) -> str:
    """The first of `names` that says anything, else the end of the id: a label is never empty. Spec: §2 · D86, D145"""
    return next((name for name in names if name), f"user ...{subject[-4:]}")


def system(job: str) -> Actor:
    """A background job as an actor, under a name a person can read."""
    return Actor(id="system", label=f"System ({job})")
