"""Pure: how many organizations, callers and vendors there are, and how callers are numbered."""

from __future__ import annotations

from dataclasses import dataclass

from bench.targets import SITES

NARROW_CALLERS = 50
# Organizations that no load uses: one for the limit, whose window must be empty, one for the token that is revoked.
SPARE_ORGANIZATIONS = 2


@dataclass(frozen=True, slots=True)
class Sizes:
    """`callers` and `vendors` are those of each organization. Caller k of organization o has number o * callers + k."""

    organizations: int
    callers: int
    vendors: int

    @property
    def all_callers(self) -> int:
        return self.organizations * self.callers

    @property
    def lists(self) -> int:
        """Credentials, each with a tool list and a session of its own."""
        return self.organizations * self.vendors

    def narrow(self) -> Sizes:
        """The first organizations, with NARROW_CALLERS callers together or a few more."""
        few = -(-NARROW_CALLERS // self.callers)
        return self.at_most(few)

    def at_most(self, organizations: int) -> Sizes:
        """The first organizations."""
        return Sizes(min(self.organizations, organizations), self.callers, self.vendors)

    def spare_caller(self, number: int) -> int:
        """The first caller, one with a token, of a spare organization."""
        return (self.organizations + number) * self.callers

    def describe(self) -> str:
        return f"{self.organizations:,} organizations x {self.callers} callers x {self.vendors} vendors"


def has_token(caller_of_organization: int) -> bool:
    """Whether the caller has a JWT; the others have agent keys."""
    return caller_of_organization % 2 == 0


def slug(vendor: int) -> str:
    return f"wide-{vendor}"


def exposed_tool(vendor: int, tool: str) -> str:
    return f"{slug(vendor).replace('-', '_')}_{tool}"


def template_of(vendor: int, mark: int) -> int:
    """The number of a request's template, SITES for each vendor."""
    return vendor * SITES + mark
