"""The API's fixtures, for contracts about the API."""

from tests.api.conftest import api, lapsed  # noqa: F401
