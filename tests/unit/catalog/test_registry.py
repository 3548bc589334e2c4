"""The catalog in memory: order, look-up, and routing by the longest prefix."""

import pytest

from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor


def make_vendor(slug: str, name: str = "", prefix: str = "") -> Vendor:
    return Vendor(
        slug=slug, name=name or slug, url=f"https://{slug}.example/mcp", tool_prefix=prefix or slug.replace("-", "_")
    )


CATALOG = Catalog([make_vendor("zeta", "alpha"), make_vendor("datto", "Beta"), make_vendor("datto-rmm", "beta")])


def test_vendors_are_sorted_by_name_without_case() -> None:
    assert [vendor.slug for vendor in CATALOG.all()] == ["zeta", "datto", "datto-rmm"]
    assert list(CATALOG) == list(CATALOG.all())


def test_look_up_by_slug() -> None:
    assert CATALOG.get("datto") is CATALOG.by_slug["datto"]
    assert CATALOG.get("nobody") is None
    assert "datto" in CATALOG
    assert "nobody" not in CATALOG
    assert len(CATALOG) == 3


@pytest.mark.parametrize(
    ("tool", "slug"),
    [
        ("datto_list", "datto"),
        ("datto_rmm_list", "datto-rmm"),
        ("datto_rmm__list", "datto-rmm"),
        ("datto__rmm_list", "datto"),
        ("datto_rmmx_list", "datto"),
        ("datto_", "datto"),
        ("zeta_a_b_c", "zeta"),
    ],
)
def test_a_name_belongs_to_the_longest_prefix(tool: str, slug: str) -> None:
    owner = CATALOG.owner_of(tool)
    assert owner is not None
    assert owner.slug == slug


def test_prefixes_that_begin_with_another_are_known() -> None:
    datto, longer = CATALOG.by_slug["datto"], CATALOG.by_slug["datto-rmm"]
    assert CATALOG.longer_prefixes(datto) == ("datto_rmm_",)
    assert CATALOG.longer_prefixes(longer) == CATALOG.longer_prefixes(CATALOG.by_slug["zeta"]) == ()
    assert CATALOG.overlaps() == [(datto, longer)]
    deep = Catalog([make_vendor(each.replace("_", "-"), prefix=each) for each in ("a_b_c", "a", "a_bx", "a_b")])
    assert deep.longer_prefixes(deep.by_slug["a"]) == ("a_b_", "a_b_c_", "a_bx_")
    assert [(one.slug, other.slug) for one, other in deep.overlaps()] == [
        ("a", "a-b"),
        ("a", "a-b-c"),
        ("a", "a-bx"),
        ("a-b", "a-b-c"),
    ]


@pytest.mark.parametrize("tool", ["", "_", "datto", "dattox_list", "DATTO_list", "_datto_list", "x_datto_list", "list"])
def test_names_without_a_known_prefix_have_no_vendor(tool: str) -> None:
    assert CATALOG.owner_of(tool) is None


def test_a_prefix_of_full_length_is_found_and_long_names_cost_nothing() -> None:
    longest = "p" * 31
    catalog = Catalog([make_vendor("p", prefix=longest)])
    assert catalog.owner_of(f"{longest}_tool") == catalog.get("p")
    assert catalog.owner_of(f"{longest}p_tool") is None
    assert catalog.owner_of("a_" * 100_000) is None


def test_a_catalog_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CATALOG.by_slug["new"] = make_vendor("new")  # type: ignore[index]
