"""Token families: all tokens that descend from one consent or one device approval."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from oauth2_provider.models import ResourceJSONField

from gateway.lib import clock, ids
from oauth_ext.models.client import service_subject


class TokenFamily(models.Model):
    """Deleting the row ends all its tokens; its lock orders refreshes. Spec: D119, D123, D124"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="token_families"
    )
    # None when the tokens belong to the service client itself.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+")
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    approved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # `scope` and `resource` are the grant: a token may narrow them, never widen them.
    scope = models.TextField()
    resource = ResourceJSONField(default=list)
    # Of the tokens that a service client got for assertions about one person: the issuer that vouched for the person.
    trusted_issuer = models.ForeignKey(
        "oauth_ext.TrustedIssuer",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="token_families",
        db_index=False,  # asked for with client and person, which have one, or when trust ends
    )
    redirect_host = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(default=clock.now)  # the last time it gave a token
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "token families"
        indexes = [
            models.Index(fields=["organization", "-last_used_at"], name="token_family_by_org"),
            models.Index(fields=["expires_at"], name="token_family_by_expiry"),
            models.Index(fields=["last_used_at"], name="token_family_by_use"),
        ]

    @property
    def subject(self) -> str:
        if self.user_id is not None:
            return str(self.user_id)
        return service_subject(self.organization_id, self.client.client_id)

    def __str__(self) -> str:
        return str(self.id)
