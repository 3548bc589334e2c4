"""Certificates for servers of a test."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority that only this test knows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._build(self._name, self._key, [], is_authority=True)

    def server(self, *dns: x509.GeneralName, days: int = 1) -> ssl.SSLContext:
        """A server with a certificate for `dns`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vendor")])
        certificate = self._build(subject, key, list(dns), is_authority=False, days=days)
        file = self._folder / f"{certificate.serial_number}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def trusting(self) -> ssl.SSLContext:
        """A client that trusts this authority; everything else as in service."""
        return ssl.create_default_context(cadata=self.certificate.public_bytes(serialization.Encoding.PEM).decode())

    def _build(self, subject: x509.Name, key: Any, dns: list[Any], *, is_authority: bool, days: int = 1) -> Any:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=2))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if dns:
            builder = builder.add_extension(x509.SubjectAlternativeName(dns), critical=False)
        return builder.sign(self._key, hashes.SHA256())
