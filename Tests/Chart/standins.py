"""Files that stand in for the Secrets of a pod: keys and certificates that are well-formed and nobody's."""

import datetime
import functools
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "stand-in"


@functools.cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def _certificate() -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in")])
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(_key().public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=365))
        .sign(_key(), hashes.SHA256())
    )


def _private_pem() -> bytes:
    return _key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _pkcs12() -> bytes:
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"stand-in", _key(), _certificate(), None, encryption)


def write(path: Path) -> None:
    """Writes a file of the kind that its name tells: a key, an identity, a certificate; a password otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".p8" | ".key":
            content = _private_pem()
        case ".p12":
            content = _pkcs12()
        case ".crt" | ".pem":
            content = _certificate().public_bytes(serialization.Encoding.PEM)
        case _:
            content = PASSWORD.encode() + b"\n"
    path.write_bytes(content)
