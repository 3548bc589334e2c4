"""Pure: clients that operators registered at vendors by hand, as the environment knows them."""

from collections.abc import Callable

from msgspec.structs import replace

from gateway.catalog.vendor import Vendor


def with_client(vendor: Vendor, given: Callable[[str], str]) -> Vendor:
    """The vendor with the id of its client, and the names of the variables that a sign-in still needs.

    `given`: the value of a variable, or "". The secret stays in the environment. Spec: contract §8
    """
    oauth = vendor.oauth
    if oauth is None:
        return vendor
    named = [each for each in (oauth.client_id_env, oauth.client_secret_env) if each]
    if not named:
        return vendor
    client_id = given(oauth.client_id_env) if oauth.client_id_env else oauth.client_id
    missing = tuple(each for each in named if not given(each))
    return replace(vendor, oauth=replace(oauth, client_id=client_id, missing_variables=missing))
