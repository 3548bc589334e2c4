"""A person, and the identities under which an identity provider confirms the person."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Upper

from audit.actor import Actor, Target, person_label
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, **fields: Any) -> User:
        """The person can sign in once an identity is attached."""
        user = self.model(email=self.normalize_email(email), **fields)
        # People sign in through the identity provider and have no password.
        user.set_unusable_password()
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """For `createsuperuser`. The password is ignored."""
        return self.create_user(email, is_staff=True, is_superuser=True, **fields)


class User(AbstractBaseUser, PermissionsMixin):
    """A person. `Identity` identifies the person; the e-mail address is data. Spec: §2 Profile · D46, D47"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    email = models.EmailField(max_length=254, db_index=True)
    # Whether the identity provider verified the address at the last sign-in. Unverified addresses are only claims.
    email_verified = models.BooleanField(default=False)
    first_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    last_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    display_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    # Of messages to the person; empty: that of the deployment. Pages go by the browser.
    language = models.CharField(max_length=8, blank=True, default="", db_default="")
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=clock.now)

    # Set by `end_sessions` until the row is saved.
    has_ended_sessions = False
    # For createsuperuser. Sign-in never looks people up by it.
    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        # For case-insensitive search on PostgreSQL; the column has an index for exact search already.
        indexes = [models.Index(Upper("email"), name="user_by_email_upper")]

    @property
    def name(self) -> str:
        """Display name, else full name, else the e-mail address's local part."""
        return self.display_name or self.full_name or self.email.partition("@")[0]

    @property
    def full_name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()

    @property
    def label(self) -> str:
        return person_label(self.id, self.display_name, self.first_name, self.last_name, self.email)

    def owns_email(self, address: str) -> bool:
        """Whether the identity provider verified `address` as this person's; letter case is ignored."""
        # Not casefold: ß and ss are different domains.
        return self.email_verified and self.email.lower() == address.lower()

    def end_sessions(self) -> None:
        """Takes effect with the save."""
        # Every session carries a digest of the unusable password, and setting it again changes the digest.
        self.set_unusable_password()
        self.has_ended_sessions = True

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=self.label)

    def as_actor(self) -> Actor:
        return Actor(id=str(self.id), label=self.label)

    def get_full_name(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Identity(models.Model):
    """One subject at one identity provider, identified by (issuer, sub). Spec: §5 (1) · D47"""

    user = models.ForeignKey(User, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    sub = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # When the provider last confirmed the person, last refused, and was last asked.
    confirmed_at = models.DateTimeField(null=True, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    # The provider's refresh token, sealed; the provider is asked with it while no browser is there. Database defaults:
    # processes of an earlier release still insert rows while this one starts.
    refresh_sealed = models.BinaryField(default=b"", db_default=b"")
    refresh_key_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "sub"], name="identity_once_per_issuer")]

    @property
    def last_confirmed_at(self) -> datetime:
        """When the provider last confirmed this person."""
        return self.confirmed_at or self.last_used_at or self.created_at

    @property
    def is_refused(self) -> bool:
        """Whether the provider's last answer was a refusal."""
        return self.refused_at is not None and self.refused_at >= self.last_confirmed_at

    def __str__(self) -> str:
        return f"{self.sub} at {self.issuer}"


class UsedLogoutToken(models.Model):
    """A provider's logout token, accepted once. Spec: OpenID Connect Back-Channel Logout 2.6"""

    token_sha256 = models.BinaryField(max_length=32, unique=True)
    # Indexed: used tokens are deleted by age.
    used_at = models.DateTimeField(default=clock.now, db_index=True)

    def __str__(self) -> str:
        return str(self.pk)
