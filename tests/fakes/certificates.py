"""An authority of a test's own and a certificate of it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Files of PEM: the authority's certificate, and a server's certificate and key."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path, address: str = "127.0.0.1") -> Certificates:
    """A new authority, and a certificate of it for a server at the address."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("An authority of a test")
    authority = _builder(authority_name, authority_name, authority_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    server = _builder(_name(address), authority_name, server_key.public_key()).add_extension(names, critical=False)
    made = Certificates(folder / "authority.pem", folder / "server.pem", folder / "server.key")
    for path, builder in ((made.authority, authority), (made.certificate, server)):
        signed = builder.sign(authority_key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
