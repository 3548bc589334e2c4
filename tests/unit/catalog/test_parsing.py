"""Parsing: the contract's own example, and every fault with its line and key."""

import pytest

from gateway.catalog.parsing import CatalogErrors, decode_catalog, read_catalog
from gateway.catalog.vendor import CredentialField, HeaderTemplate, ToolOverride, Validation
from tests.factories.catalog_text import parse_catalog

EXAMPLE = """
[[vendor]]
slug = "acme"
name = "Acme RMM"
url = "http://127.0.0.1:9100/mcp"
tool_prefix = "acme"
category = "demo"
docs_url = "https://acme.example/docs"
timeout_seconds = 30
[[vendor.headers]]
name = "X-Api-Key"
value = "{apiKey}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
placeholder = "…"
help = "Where to find it"
options = ["eu", "us"]
[vendor.validation]
tool = "acme_whoami"
arguments = {}
[vendor.tools.acme_list_devices]
read_only = true
ttl_seconds = 60
"""
MINIMAL = '[[vendor]]\nslug = "a-b"\nname = "A"\nurl = "https://a.example/mcp"\n'


def faults(text: str) -> list[tuple[int, str, str]]:
    """Line, key and message of every fault."""
    with pytest.raises(CatalogErrors) as caught:
        parse_catalog(text, "test.toml")
    return [(error.line, error.key, error.message) for error in caught.value.errors]


def test_the_example_of_the_contract() -> None:
    [vendor] = parse_catalog(EXAMPLE)
    assert (vendor.slug, vendor.name, vendor.url) == ("acme", "Acme RMM", "http://127.0.0.1:9100/mcp")
    assert (vendor.tool_prefix, vendor.category, vendor.timeout_seconds) == ("acme", "demo", 30)
    assert vendor.docs_url == "https://acme.example/docs"
    assert vendor.headers == (HeaderTemplate("X-Api-Key", "{apiKey}"),)
    assert vendor.fields == (
        CredentialField(
            "apiKey",
            "API key",
            secret=True,
            required=True,
            placeholder="…",
            help="Where to find it",
            options=("eu", "us"),
        ),
    )
    assert vendor.validation is not None
    assert (vendor.validation.tool, dict(vendor.validation.arguments)) == ("acme_whoami", {})
    assert dict(vendor.tools) == {"acme_list_devices": ToolOverride(read_only=True, ttl_seconds=60)}
    assert not vendor.verified


def test_defaults() -> None:
    [vendor] = parse_catalog(MINIMAL + 'verified = true\n[[vendor.fields]]\nname = "key"\n')
    assert (vendor.tool_prefix, vendor.category, vendor.docs_url) == ("a_b", "Other", "")
    assert (vendor.timeout_seconds, vendor.validation, dict(vendor.tools), vendor.verified) == (30, None, {}, True)
    assert vendor.fields == (CredentialField("key", "key", secret=True, required=True),)


def test_an_error_is_one_line_with_file_line_and_key() -> None:
    with pytest.raises(CatalogErrors) as caught:
        parse_catalog(MINIMAL + "timeout_seconds = 301\n", "extra\n.toml")
    assert str(caught.value) == "extra\\n.toml, line 5, vendor[0].timeout_seconds (a-b): must be between 1 and 300"
    [error] = caught.value.errors
    assert (error.line, error.key, error.source) == (5, "vendor[0].timeout_seconds", "extra\n.toml")


def test_all_faults_are_reported_in_the_order_of_lines() -> None:
    text = (
        '[[vendor]]\nslug = "Bad Slug"\nurl = "ftp://x"\nsurprise = 1\n'
        '[[vendor.headers]]\nname = "Host"\nvalue = "{nobody}"\nextra = 1\n'
        '[[vendor]]\nname = 3\nslug = "ok"\nurl = "https://ok.example"\n'
        'other = 1\n[[vendor.fields]]\nname = "1st"\nsecret = "yes"\n'
    )
    found = faults(text)
    assert [(line, key) for line, key, _ in found] == [
        (1, "vendor[0].name"),
        (2, "vendor[0].slug"),
        (3, "vendor[0].url"),
        (4, "vendor[0].surprise"),
        (6, "vendor[0].headers[0].name"),
        (7, "vendor[0].headers[0].value"),
        (8, "vendor[0].headers[0].extra"),
        (10, "vendor[1].name"),
        (13, "vendor[1].other"),
        (15, "vendor[1].fields[0].name"),
        (16, "vendor[1].fields[0].secret"),
    ]
    assert all("\n" not in message for _, _, message in found)


@pytest.mark.parametrize(
    ("line", "key", "why"),
    [
        ('slug = "a"', "slug", "Cannot overwrite"),
        ("tool_prefix = 1", "vendor[0].tool_prefix", "must be a string, not a number"),
        ('tool_prefix = "A"', "vendor[0].tool_prefix", "lower-case"),
        ('tool_prefix = "a__b"', "vendor[0].tool_prefix", "single underscores"),
        ('tool_prefix = "a_"', "vendor[0].tool_prefix", "single underscores"),
        (f'tool_prefix = "{"a" * 32}"', "vendor[0].tool_prefix", "lower-case"),
        ('category = "a\\u202eb"', "vendor[0].category", "Control and direction"),
        (f'category = "{"a" * 61}"', "vendor[0].category", "at most 60"),
        ('docs_url = "javascript:alert(1)"', "vendor[0].docs_url", "http(s)"),
        ('docs_url = "https://u:p@a.example/"', "vendor[0].docs_url", "http(s)"),
        ("timeout_seconds = 0", "vendor[0].timeout_seconds", "between 1 and 300"),
        ("timeout_seconds = nan", "vendor[0].timeout_seconds", "between 1 and 300"),
        ('timeout_seconds = "30"', "vendor[0].timeout_seconds", "must be a number, not a string"),
        ("timeout_seconds = true", "vendor[0].timeout_seconds", "must be a number, not true or false"),
        ('verified = "no"', "vendor[0].verified", "must be true or false"),
        ("verified = 1979-05-27", "vendor[0].verified", "not a date or time"),
        ("tool-prefix = 'a'", "vendor[0].tool-prefix", "not a key"),
        ("headers = 'X'", "vendor[0].headers", "[[vendor.headers]]"),
        ("fields = [1]", "vendor[0].fields", "[[vendor.fields]]"),
        ("validation = 'x'", "vendor[0].validation", "must be a table"),
        ("validation = {}", "vendor[0].validation.tool", "is missing"),
        ("validation = {tool = 't', arguments = {at = 1979-05-27}}", "vendor[0].validation.arguments", "JSON"),
        ("validation = {tool = 't', arguments = {x = inf}}", "vendor[0].validation.arguments", "JSON"),
        ('validation = {tool = "t", arguments = {x = "a\\u0000"}}', "vendor[0].validation.arguments", "NUL"),
        ("validation = {tool = 't', arguments = 1}", "vendor[0].validation.arguments", "must be a table"),
        ("validation = {tool = 't', args = {}}", "vendor[0].validation.args", "not a key"),
        ("tools = {t = 1}", "vendor[0].tools.t", "must be a table"),
        ("tools = {t = {ttl = 1}}", "vendor[0].tools.t.ttl", "not a key"),
        ("tools = {t = {ttl_seconds = 3601}}", "vendor[0].tools.t.ttl_seconds", "between 0 and 3600"),
        ("tools = {t = {ttl_seconds = 1.5}}", "vendor[0].tools.t.ttl_seconds", "whole number"),
        ("tools = {t = {read_only = 0}}", "vendor[0].tools.t.read_only", "true or false"),
        ('tools = {"" = {}}', "vendor[0].tools.", "tool name"),
        ("headers = [{name = 'X Y', value = 'v'}]", "vendor[0].headers[0].name", "header name"),
        ("headers = [{name = 'Cookie', value = 'v'}]", "vendor[0].headers[0].name", "sets itself"),
        ("headers = [{name = 'X', value = ''}]", "vendor[0].headers[0].value", "may not be empty"),
        ("headers = [{name = 'X'}]", "vendor[0].headers[0].value", "is missing"),
        ("headers = [{name = 'X', value = '{'}]", "vendor[0].headers[0].value", "brace"),
        ("headers = [{name = 'X', value = '{b64:k:n}'}]", "vendor[0].headers[0].value", "field n,"),
        ("headers = [{name = 'X', value = '€'}]", "vendor[0].headers[0].value", "ASCII"),
        ("headers = [{name='X',value='1'},{name='x',value='2'}]", "vendor[0].headers[1].name", 'repeats "x"'),
    ],
)
def test_one_fault_at_a_time(line: str, key: str, why: str) -> None:
    text = f'{MINIMAL}{line}\n[[vendor.fields]]\nname = "k"\n'
    if line.startswith("fields"):
        text = f"{MINIMAL}{line}\n"
    [(found_line, found_key, message)] = [fault for fault in faults(text) if "field k," not in fault[2]]
    assert (found_line, found_key) == (5, key)
    assert why in message


@pytest.mark.parametrize("slug", ["", "-a", "a_b", "A", "a.b", "a/b", "ä", "mcp", "all", "a" * 32, "a\\nb"])
def test_slugs_that_are_refused(slug: str) -> None:
    [(line, key, _)] = faults(f'[[vendor]]\nslug = "{slug}"\nname = "A"\nurl = "https://a.example"\ntool_prefix = "a"')
    assert (line, key) == (2, "vendor[0].slug")


@pytest.mark.parametrize("slug", ["a", "0", "acme-rmm", "3cx", "a" * 31])
def test_slugs_that_are_accepted(slug: str) -> None:
    [vendor] = parse_catalog(f'[[vendor]]\nslug = "{slug}"\nname = "A"\nurl = "https://a.example"')
    assert vendor.tool_prefix == slug.replace("-", "_")


def test_a_slug_whose_prefix_would_be_ambiguous_needs_one_of_its_own() -> None:
    text = '[[vendor]]\nslug = "a--b"\nname = "A"\nurl = "https://a.example"\n'
    [(line, key, _)] = faults(text)
    assert (line, key) == (1, "vendor[0].tool_prefix")
    assert parse_catalog(text + 'tool_prefix = "ab"')[0].tool_prefix == "ab"


@pytest.mark.parametrize(
    ("url", "field", "why"),
    [
        ("https://{zone}.a.example", "", "names the field zone"),
        ("https://{zone}.a.example", 'name = "zone"', "secret field zone"),
        ("https://{zone}.a.example", 'name = "zone"\nsecret = false\nrequired = false', "must be required"),
        ("{zone}/mcp", 'name = "zone"\nsecret = false\nrequired = false', "must be required"),
        ("https://a.example/?t={zone}", 'name = "zone"', "secret field zone"),
        ("https://u:p@a.example", "", "user name"),
        ("https://a.example/#x", "", "fragment"),
        ("file:///etc/passwd", "", "address"),
    ],
)
def test_addresses_that_are_refused(url: str, field: str, why: str) -> None:
    text = f'[[vendor]]\nslug = "a"\nname = "A"\nurl = "{url}"\n' + (f"[[vendor.fields]]\n{field}\n" if field else "")
    [(line, key, message)] = faults(text)
    assert (line, key) == (4, "vendor[0].url")
    assert why in message


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("https://{zone}.a.example", "required = true"),
        ("https://{zone}.a.example", 'required = false\ndefault = "eu"'),
        ("https://a.example/?zone={zone}", "required = false"),
        ("{zone}/mcp", "required = true"),
    ],
)
def test_addresses_with_fields(url: str, field: str) -> None:
    text = f'[[vendor]]\nslug = "a"\nname = "A"\nurl = "{url}"\n'
    [vendor] = parse_catalog(f'{text}[[vendor.fields]]\nname = "zone"\nsecret = false\n{field}\n')
    assert vendor.customer_supplied_url


@pytest.mark.parametrize(
    ("field", "key", "why"),
    [
        ("label = 'x'", "name", "is missing"),
        ("name = 'a-b'", "name", "letters"),
        (f"name = '{'a' * 65}'", "name", "letters"),
        ("name = 'a'\nkey = 1", "key", "not a key"),
        ("name = 'a'\nhelp = 1", "help", "must be a string"),
        ("name = 'a'\noptions = 'x'", "options", "list of strings"),
        ("name = 'a'\noptions = ['']", "options", "list of strings"),
        ("name = 'a'\noptions = ['x', 'x']", "options", "once"),
        ('name = "a"\noptions = ["x\\ny"]', "options", "Control"),
        ("name = 'a'\nsecret = false\noptions = ['x']\ndefault = 'y'", "default", "one of the options"),
        ("name = 'a'\ndefault = 'y'", "default", "not for secret"),
    ],
)
def test_fields_that_are_refused(field: str, key: str, why: str) -> None:
    found = faults(f"{MINIMAL}[[vendor.fields]]\n{field}\n")
    assert [name for _, name, _ in found] == [f"vendor[0].fields[0].{key}"]
    assert why in found[0][2]


def test_a_repeated_field_is_named_where_it_is_repeated() -> None:
    text = MINIMAL + '[[vendor.fields]]\nname = "a"\n[[vendor.fields]]\nname = "a"\n'
    assert faults(text) == [(8, "vendor[0].fields[1].name", 'repeats "a"')]


def test_more_than_32_fields_are_refused() -> None:
    text = MINIMAL + "".join(f'[[vendor.fields]]\nname = "f{number}"\n' for number in range(33))
    assert [(key, message) for _, key, message in faults(text)] == [("vendor[0].fields", "may have at most 32 entries")]


def test_repeated_slugs_and_prefixes_name_the_first_vendor() -> None:
    second = '[[vendor]]\nslug = "c"\nname = "C"\nurl = "https://c.example"\ntool_prefix = "a_b"\n'
    assert faults(MINIMAL + MINIMAL) == [(6, "vendor[1].slug", 'repeats "a-b" of vendor[0]')]
    assert faults(MINIMAL + second) == [(9, "vendor[1].tool_prefix", 'repeats "a_b" of vendor[0]')]


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('[[vendor]]\nslug = "a\n', 2, "slug"),
        ('[[vendor]]\nslug = "a"\nslug = "b"\n', 3, "slug"),
        ("[[vendor]]\n[[vendor\n", 2, "vendor"),
        ("[[vendor]]\n= 1\n", 2, "file"),
        ("", 1, "vendor"),
        ("# nothing\n", 1, "vendor"),
        ("[vendor]\nslug = 'a'\n", 1, "vendor"),
        ("vendor = 1\n", 1, "vendor"),
        ("[[vendors]]\nslug = 'a'\n", 1, "vendors"),
        ("version = 1\n" + MINIMAL, 1, "version"),
        ("x = " + "[" * 5000, 1, "file"),
    ],
)
def test_texts_that_are_no_catalog(text: str, line: int, key: str) -> None:
    found = faults(text)
    assert (found[0][0], found[0][1]) == (line, key)


def test_a_file_is_utf_8_and_of_bounded_size() -> None:
    assert decode_catalog("\ufeffx = 'é'".encode(), "a.toml") == "x = 'é'"
    with pytest.raises(CatalogErrors, match=r"a\.toml, line 2, file: is not UTF-8"):
        decode_catalog(b"x = 1\ny = '\xff'", "a.toml")
    with pytest.raises(CatalogErrors, match="longer than 1048576 bytes"):
        decode_catalog(b" " * 1048577, "a.toml")


def test_a_read_file_remembers_its_lines() -> None:
    file = read_catalog(MINIMAL, "a.toml")
    [error] = file.errors([(("vendor", 0, "name"), "is odd")])
    assert str(error) == "a.toml, line 3, vendor[0].name (a-b): is odd"


def test_an_error_names_the_vendor_unless_its_slug_is_at_fault() -> None:
    text = MINIMAL + "surprise = 1\n" + MINIMAL.replace("a-b", "A B") + "surprise = 1\n"
    with pytest.raises(CatalogErrors) as caught:
        parse_catalog(text, "a.toml")
    assert [str(error).partition(": ")[0] for error in caught.value.errors] == [
        "a.toml, line 5, vendor[0].surprise (a-b)",
        "a.toml, line 7, vendor[1].slug",
        "a.toml, line 10, vendor[1].surprise",
    ]


@pytest.mark.parametrize("key", ["x` - at `$[0].y", "`", "a b", "\\u007f", "", "$[0]"])
def test_an_unknown_key_of_any_name_is_refused_at_its_place(key: str) -> None:
    [(line, found, message)] = faults(f'{MINIMAL}[[vendor.headers]]\nname = "X"\nvalue = "v"\n"{key}" = 1\n')
    assert (line, message) == (8, "is not a key of the catalog")
    assert found == "vendor[0].headers[0]." + key.replace("\\u007f", "\x7f")


@pytest.mark.parametrize("place", ["x", "vendor.x", "vendor.validation.arguments.x"])
def test_a_key_with_very_many_dots_is_refused_without_a_traceback(place: str) -> None:
    text = f'{MINIMAL}validation.tool = "t"\n' if "arguments" in place else MINIMAL
    dotted = place.removeprefix("vendor.") + ".x" * 5000 + " = 1\n"
    assert faults(dotted + text if place == "x" else text + dotted)


def test_texts_are_trimmed_and_normalized_but_not_those_of_arguments() -> None:
    text = (
        MINIMAL.replace('"A"', '"  e\\u0301 "') + '[vendor.validation]\ntool = " t "\narguments = {a = " e\\u0301 "}\n'
    )
    [vendor] = parse_catalog(text)
    assert (vendor.name, vendor.validation) == ("é", Validation("t", {"a": " e\u0301 "}))


def test_a_sample_has_a_value_for_each_required_field() -> None:
    [vendor] = parse_catalog(MINIMAL + '[[vendor.fields]]\nname = "key"\n[vendor.sample]\nkey = "demo-{random}"\n')
    assert vendor.sample_fields("xyz") == {"key": "demo-xyz"}
    [vendor] = parse_catalog(MINIMAL + "[vendor.sample]\n")
    assert vendor.sample_fields("xyz") == {}
    [vendor] = parse_catalog(MINIMAL)
    assert vendor.sample_fields("xyz") is None


@pytest.mark.parametrize(
    ("sample", "key", "why"),
    [
        ("", "vendor[0].sample.key", "may not be empty"),
        ('key = "a"\nother = "b"', "vendor[0].sample.other", "is not a field of this vendor"),
        ('key = "c"', "vendor[0].sample.key", "must be one of the options"),
        ("key = 1", "vendor[0].sample", "must be a string"),
    ],
)
def test_samples_that_are_refused(sample: str, key: str, why: str) -> None:
    field = '[[vendor.fields]]\nname = "key"\noptions = ["a", "b"]\n'
    found = faults(f"{MINIMAL}{field}[vendor.sample]\n{sample}\n")
    assert [(where, why in message) for _, where, message in found] == [(key, True)]
