"""People of the demonstration identity provider: sign-ins, refresh tokens and removals."""

import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import jwt

from demo.identity_grants import InvalidGrantError, Person
from demo.identity_keys import ALGORITHM, SigningKey
from demo.listening import StartError

# Every e-mail address is a person until removed.
PEOPLE_FILE = "removed-people.json"
SIGN_IN_COOKIE = "demo_identity_session"
# Browsers in memory; the oldest sign-in is dropped first.
MAX_SIGN_INS = 1000


class People:
    """Browser sign-ins in memory; removals in `folder`, or in memory without one. `clock` is in seconds."""

    def __init__(self, key: SigningKey, issuer: str, clock: Callable[[], float], folder: Path | None = None) -> None:
        self._key, self._issuer, self._clock = key, issuer, clock
        self._path = None if folder is None else folder / PEOPLE_FILE
        self._sign_ins: OrderedDict[str, Person] = OrderedDict()
        self._removed_at: dict[str, float] = {}
        self._removed: set[str] = set()
        self._load()

    def is_removed(self, email: str) -> bool:
        return email in self._removed

    def remove(self, email: str) -> None:
        """Remove the person and revoke all their sign-ins and tokens."""
        self._removed.add(email)
        self._removed_at[email] = self._clock()
        self._store()

    def restore(self, email: str) -> None:
        """Allow the person to sign in again. Earlier sign-ins and tokens stay revoked."""
        self._removed.discard(email)
        self._store()

    def begin_sign_in(self, person: Person) -> str:
        cookie = secrets.token_urlsafe(32)
        while len(self._sign_ins) >= MAX_SIGN_INS:
            self._sign_ins.popitem(last=False)
        self._sign_ins[cookie] = person
        return cookie

    def signed_in(self, cookie: str | None) -> Person | None:
        person = self._sign_ins.get(cookie or "")
        return None if person is None or self.is_removed(person.email) else person

    def end_sign_in(self, cookie: str | None) -> None:
        self._sign_ins.pop(cookie or "", None)

    def refresh_token(self, person: Person, client_id: str, scope: str) -> str:
        """A token valid until the person is removed."""
        # Signed and stateless, so that it survives a restart.
        claims = {"sub": person.email, "name": person.name, "client_id": client_id, "scope": scope}
        return self._key.sign({**claims, "aud": f"{self._issuer}/refresh", "iat": self._clock()})

    def refreshed(self, token: str, client_id: str) -> tuple[Person, str]:
        """The person and scope of a refresh token. Raises: InvalidGrantError when it is invalid or revoked."""
        try:
            claims = jwt.decode(
                token,
                self._key.private.public_key(),
                algorithms=[ALGORITHM],
                audience=f"{self._issuer}/refresh",
                options={"verify_iat": False},
            )
        except jwt.PyJWTError:
            raise InvalidGrantError("the refresh token is unknown") from None
        person = Person(email=str(claims["sub"]), name=str(claims["name"]))
        if claims["client_id"] != client_id:
            raise InvalidGrantError("the refresh token belongs to another client")
        # A token from before a removal stays revoked after the person is restored.
        if self.is_removed(person.email) or claims["iat"] <= self._removed_at.get(person.email, float("-inf")):
            raise InvalidGrantError("the person was removed")
        return person, str(claims["scope"])

    def _load(self) -> None:
        if self._path is None or not self._path.exists():
            return
        try:
            stored = json.loads(self._path.read_text())
            self._removed = {str(email) for email in stored["removed"]}
            self._removed_at = {str(email): float(at) for email, at in stored["removed_at"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StartError(f"{self._path} cannot be read: {type(error).__name__}") from error

    def _store(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_suffix(".new")
        content = {"removed": sorted(self._removed), "removed_at": self._removed_at}
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file)
        draft.replace(self._path)
