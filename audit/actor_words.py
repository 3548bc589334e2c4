"""The name of an actor as pages show it. Stored and exported names stay as they are."""

from __future__ import annotations

from django.utils.translation import gettext

from audit.actor import job_of
from gateway.lib.translated import translated


def actor_words(actor_id: str, label: str) -> str:
    """The label, which is words of ours where the service itself acted, in the language of the page."""
    job = job_of(actor_id, label)
    return gettext("System (%(job)s)") % {"job": translated(job)} if job else label
