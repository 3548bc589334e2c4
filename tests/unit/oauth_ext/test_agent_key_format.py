"""The spelling of agent keys."""

from __future__ import annotations

import pytest

from oauth_ext import agent_key_format

PUBLIC, SECRET = "0123456789Ab", "Z" * 43


def test_build_and_parse_agree() -> None:
    built = agent_key_format.build(PUBLIC, SECRET)
    assert built.text() == f"cak_{PUBLIC}_{SECRET}"
    assert built.prefix == f"cak_{PUBLIC}"
    assert agent_key_format.parse(built.text()) == built


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cak_",
        f"cak_{PUBLIC}",
        f"cak_{PUBLIC}_",
        f"CAK_{PUBLIC}_{SECRET}",
        f"cak_{PUBLIC[:-1]}_{SECRET}",
        f"cak_{PUBLIC}_{SECRET}0",
        f"cak_{PUBLIC}_{SECRET[:-1]}",
        f"cak_{PUBLIC}_{SECRET[:-1]}-",
        f"cak_{PUBLIC}_{SECRET[:-1]}é",
        f"cak_{PUBLIC}_{SECRET}\n",
        f" cak_{PUBLIC}_{SECRET}",
    ],
)
def test_other_spellings_are_no_keys(text: str) -> None:
    assert agent_key_format.parse(text) is None


def test_build_refuses_what_parse_would_not_read() -> None:
    with pytest.raises(ValueError, match="12 and 43") as refusal:
        agent_key_format.build(PUBLIC, "a_secret_that_is_short")
    assert "a_secret" not in str(refusal.value)


def test_the_secret_half_stays_out_of_repr() -> None:
    assert SECRET not in repr(agent_key_format.build(PUBLIC, SECRET))
