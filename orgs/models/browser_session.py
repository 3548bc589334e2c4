from __future__ import annotations

from django.conf import settings
from django.db import models

from gateway.lib import clock, ids
from gateway.lib.sentences import sentence

WORD_CHARACTERS = 40


class BrowserSession(models.Model):
    """A person's sign-in in one browser, as the person sees it. docs/decisions/0074"""

    # The id on pages: the session's own key stays out of them, although it is a hash.
    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    # The session's end, of any kind, deletes this row.
    session = models.OneToOneField("sessions.Session", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="browser_sessions")
    first_seen_at = models.DateTimeField(default=clock.now)
    last_seen_at = models.DateTimeField(default=clock.now)
    # In words, as the browser claims them; empty for unknown ones.
    browser = models.CharField(max_length=WORD_CHARACTERS, blank=True)
    system = models.CharField(max_length=WORD_CHARACTERS, blank=True)

    @property
    def in_words(self) -> str:
        if self.browser and self.system:
            return sentence("%(browser)s on %(system)s", browser=self.browser, system=self.system)
        return self.browser or self.system or sentence("an unknown browser")

    def __str__(self) -> str:
        return f"{self.in_words} of {self.user_id}"


class KnownBrowser(models.Model):
    """A browser that a person has signed in with, in the same words. It outlives the session."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    browser = models.CharField(max_length=WORD_CHARACTERS, blank=True)
    system = models.CharField(max_length=WORD_CHARACTERS, blank=True)
    first_seen_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "browser", "system"], name="known_browser_once")]

    def __str__(self) -> str:
        return f"{self.browser} on {self.system} of {self.user_id}"
