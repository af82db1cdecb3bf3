"""A certificate for a server on this computer, signed by itself."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """Write a PEM file with key and certificate for this address, and one with the certificate alone; return both."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = certificate.public_bytes(encoding)
    pem, ca = folder / "server.pem", folder / "ca.pem"
    pem.touch(mode=0o600)
    pem.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain) + public)
    ca.write_bytes(public)
    return pem, ca
