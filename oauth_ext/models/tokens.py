"""The library's token tables, swapped so that tokens belong to an organization and descend from a family."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from oauth2_provider.models import AbstractAccessToken, AbstractGrant, AbstractIDToken, AbstractRefreshToken


class Grant(AbstractGrant):
    """An authorization code, stored as its SHA-256. Spec: D120"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    # A redeemed code is kept for a day, so that a replay is detected.
    redeemed_at = models.DateTimeField(null=True, blank=True)
    # No foreign key: ending the family would have to change this row, which a replay of the code has locked while it
    # waits for the family.
    family_key = models.UUIDField(null=True, blank=True, editable=False)

    objects: ClassVar[models.Manager[Grant]] = models.Manager()

    class Meta(AbstractGrant.Meta):
        abstract = False
        indexes = [models.Index(fields=["expires"], name="grant_by_expiry")]


class AccessToken(AbstractAccessToken):
    """An issued access token, stored by its checksum. Deleting the row revokes it."""

    # Refresh tokens record their own rotation, and no ID tokens are issued.
    source_refresh_token = None  # type: ignore[assignment]
    id_token = None  # type: ignore[assignment]
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    token_family = models.ForeignKey("oauth_ext.TokenFamily", models.CASCADE, null=True, blank=True, related_name="+")

    objects: ClassVar[models.Manager[AccessToken]] = models.Manager()


class RefreshToken(AbstractRefreshToken):
    """An issued refresh token, stored by its checksum. Spec: D123"""

    # `revoked` is the moment of its use.
    access_token = None  # type: ignore[assignment]
    resource = None  # type: ignore[assignment]
    # None for a service client: the device flow gives refresh tokens too.
    user = models.ForeignKey(  # type: ignore[assignment]
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="%(app_label)s_%(class)s"
    )
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    token_family = models.ForeignKey(  # type: ignore[assignment]
        "oauth_ext.TokenFamily", models.CASCADE, related_name="+"
    )
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    generation = models.PositiveIntegerField(default=0)
    in_grace = models.BooleanField(default=False)  # made by a second use of its parent

    objects: ClassVar[models.Manager[RefreshToken]] = models.Manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token_checksum"], name="refresh_token_once")]
        verbose_name = "refresh token"


class IDToken(AbstractIDToken):
    """Never written, because no ID tokens are issued; the library requires the table."""

    objects: ClassVar[models.Manager[IDToken]] = models.Manager()
