"""Certificates for tests, made anew each time: nothing to expire in a repository."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates of hosts and askers."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tests")
        key = self._key.public_key()
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        mine = (
            self._begun(self._name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "authority.pem"
        self.certificate.write_bytes(mine.public_bytes(serialization.Encoding.PEM))

    def _begun(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder(issuer_name=self._name, subject_name=name, public_key=key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(signer, critical=False)
        )

    def issued(self, name: str, password: bytes | None = None) -> tuple[Path, Path]:
        """Certificate and key of a name, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        signed = (
            self._begun(_name(name), key.public_key())
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        how = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password)
        )
        files = (self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, how))
        files[1].chmod(0o600)
        return files


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
