"""A person, and the identities under which an identity provider vouches for that person."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models

from audit.actor import Actor
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS


class UserManager(BaseUserManager["User"]):
    """People have no password: they sign in through the identity provider."""

    def create_user(self, email: str, **fields: Any) -> User:
        """A person who can sign in once an identity is attached."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_unusable_password()
        user.save(using=self._db)
        return user


class User(AbstractBaseUser, PermissionsMixin):
    """A person. The e-mail address is data, not identity: that is `Identity`.

    Spec: §2 Profile · D46, D47
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    email = models.EmailField(max_length=254, db_index=True)
    # Whether the identity provider vouched for the address at the last sign-in. Anybody can claim the other ones.
    email_verified = models.BooleanField(default=False)
    first_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    last_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    display_name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=clock.now)

    USERNAME_FIELD = "id"
    EMAIL_FIELD = "email"
    objects: ClassVar[UserManager] = UserManager()

    @property
    def name(self) -> str:
        """What to call this person: the name they chose, else their full name, else the e-mail's local part."""
        full_name = f"{self.first_name} {self.last_name}".strip()
        return self.display_name or full_name or self.email.partition("@")[0]

    def owns_email(self, address: str) -> bool:
        """Whether this is the person's address by the identity provider's word, in any case of its letters.

        Not casefold: ß and ss are different domains.
        """
        return self.email_verified and self.email.lower() == address.lower()

    def as_actor(self) -> Actor:
        """The person as audit rows name them."""
        return Actor(id=str(self.id), label=self.name)

    def get_full_name(self) -> str:
        """For Django's admin."""
        return self.name

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Identity(models.Model):
    """One subject at one identity provider. (issuer, sub) is who somebody is. Spec: §5 (1) · D47"""

    user = models.ForeignKey(User, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    sub = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "sub"], name="identity_once_per_issuer")]

    def __str__(self) -> str:
        return f"{self.sub} at {self.issuer}"
