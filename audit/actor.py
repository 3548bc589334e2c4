"""Pure: actors and targets of audit rows. Labels are snapshots: a rename does not change history.

Spec: §2 Audit entries · D81, D86
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

# The label of an invitation, which pages put into other languages. Spec: §2 · D86
INVITATION_FOR, ANYONE = "invitation for ", "anyone with the link"
SYSTEM_ID = "system"
_SYSTEM = "System ("


@dataclass(frozen=True, slots=True)
class Actor:
    id: str
    label: str

    def as_actor(self) -> Actor:
        # Services accept people and actors alike.
        return self


@dataclass(frozen=True, slots=True)
class Target:
    id: str
    label: str


def label_of(subject: str, *names: str) -> str:
    """A label is never empty. Spec: §2 · D86, D145"""
    return next((name for name in names if name), f"user ...{subject[-4:]}")


def person_label(person_id: UUID, display_name: str, first_name: str, last_name: str, email: str) -> str:
    """The name in logs: display name, full name, e-mail address, or end of the id. Spec: §2 Audit entries · D145"""
    return label_of(str(person_id), display_name, f"{first_name} {last_name}".strip(), email)


def system(job: str) -> Actor:
    """The service itself. `job`: in English, marked as a `sentence` unless it is a command's name."""
    return Actor(id=SYSTEM_ID, label=f"{_SYSTEM}{job})")


def job_of(actor_id: str, label: str) -> str:
    """The job of a `system` actor; "" for other actors, also for one with such a name."""
    is_system = actor_id == SYSTEM_ID and label.startswith(_SYSTEM) and label.endswith(")")
    return label[len(_SYSTEM) : -1] if is_system else ""
