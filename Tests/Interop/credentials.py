"""Certificates for the servers of a test, and APNs signing keys made the way an operator makes them."""

import datetime
import ipaddress
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


@dataclass(frozen=True)
class ServerIdentity:
    """The files of one server: its chain, its key, and the authority that a client must trust."""

    certificate: Path
    key: Path
    authority: Path


class CertificateAuthority:
    """A private authority; `authority` is the file for a client's `caFile`."""

    def __init__(self, directory: Path, common_name: str = "Interop Authority"):
        self.directory = directory
        self.authority = directory / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(common_name))
            .issuer_name(_name(common_name))
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.authority.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str = "localhost") -> ServerIdentity:
        """A certificate for `name`, localhost and the loopback addresses, for a server or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName(
                    [
                        *(x509.DNSName(entry) for entry in dict.fromkeys([name, "localhost"])),
                        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                        x509.IPAddress(ipaddress.ip_address("::1")),
                    ]
                ),
                critical=False,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        chain, key_file = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(key_file, key)
        return ServerIdentity(chain, key_file, self.authority)

    def client(self, user_id: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        """A client certificate whose subject has this UID."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        subject = [x509.NameAttribute(NameOID.USER_ID, user_id), x509.NameAttribute(NameOID.COMMON_NAME, "Push")]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return key, certificate


@dataclass(frozen=True)
class SigningKey:
    """An APNs auth key (.p8) of one team, made with openssl."""

    file: Path
    key_id: str
    team_id: str
    public_pem: str


def make_signing_key(directory: Path, key_id: str, team_id: str) -> SigningKey:
    """Writes `AuthKey_<key id>.p8`: PKCS#8, P-256, PEM, as Apple hands it out."""
    path = directory / f"AuthKey_{key_id}.p8"
    made = subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path)],
        capture_output=True,
        check=False,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    public = subprocess.run(
        ["openssl", "pkey", "-in", str(path), "-pubout"], capture_output=True, check=True, text=True
    )
    return SigningKey(path, key_id, team_id, public.stdout)


@dataclass(frozen=True)
class PushCertificate:
    """A client certificate for one bundle id, in the forms that people keep theirs in."""

    certificate: Path
    key: Path
    #: Certificate and key in one file.
    both: Path
    p12: Path
    password_file: Path
    #: Whose certificates a server must take.
    authority: Path


def make_push_certificate(directory: Path, bundle: str) -> PushCertificate:
    """As Apple's: the bundle id is the UID of the subject."""
    authority = CertificateAuthority(directory, "Interop Push Authority")
    made = PushCertificate(
        *(directory / name for name in ("push.pem", "push.key", "both.pem", "push.p12", "password")),
        authority=authority.authority.rename(directory / "push-ca.pem"),
    )
    key, certificate = authority.client(bundle)
    _write_key(made.key, key)
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.both.write_bytes(made.certificate.read_bytes() + made.key.read_bytes())
    made.password_file.write_text("s3cret words\n")
    encryption = serialization.BestAvailableEncryption(b"s3cret words")
    made.p12.write_bytes(pkcs12.serialize_key_and_certificates(b"push", key, certificate, None, encryption))
    return made
