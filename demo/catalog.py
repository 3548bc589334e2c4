"""The catalog entry of the demonstration vendor, for the address it is served at."""

from pathlib import Path

from demo.listening import http_origin

CATALOG_FILE = Path(__file__).with_suffix(".toml")
WRITTEN_URL = 'url = "http://127.0.0.1:9100/mcp"'


def render_catalog(vendor_port: int, host: str = "127.0.0.1") -> str:
    """The TOML of catalog.toml with the vendor's address at `host` and `vendor_port`.

    Raises: ValueError when the port or the host could not stand in an address.
    Contract: §4.
    """
    if not 1 <= vendor_port <= 65535:
        raise ValueError(f"{vendor_port} is not a port")
    if not host or not all(letter.isascii() and (letter.isalnum() or letter in ".:-") for letter in host):
        raise ValueError(f"{host!r} is not a host name or an address")
    before, written, after = CATALOG_FILE.read_text(encoding="utf-8").partition(WRITTEN_URL)
    if not written:
        raise ValueError(f"{CATALOG_FILE.name} no longer holds the line {WRITTEN_URL}")
    return f'{before}url = "{http_origin(host, vendor_port)}/mcp"{after}'
