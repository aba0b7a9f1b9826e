"""A facility's authority for the tests, made by the openssl command: certificates of accounts' own keys, and revocation lists."""
import os

from lab import run

SETTINGS = """[ca]
default_ca = facility
[facility]
dir = .
database = index.txt
serial = serial
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
"""


class Facility:
    def __init__(self, lab):
        self.directory = lab.directory / "facility"
        self.directory.mkdir()
        (self.directory / "openssl.cnf").write_text(SETTINGS)
        (self.directory / "index.txt").write_text("")
        (self.directory / "serial").write_text("01\n")
        self.openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj",
                     "/CN=facility", "-config", "openssl.cnf", "-extensions", "authority")
        self.ca = self.directory / "ca.pem"
        self.crl = self.directory / "crl.pem"
        self.publish()

    def openssl(self, *arguments):
        run("env", "-C", self.directory, "openssl", *arguments)

    def certify(self, account, name):
        """Gives the certificate of the account's key."""
        certificate = self.directory / f"{name}.pem"
        (self.directory / f"{name}.ext").write_text(f"subjectAltName = DNS:{name}\nextendedKeyUsage = serverAuth, clientAuth\n")
        self.openssl("req", "-new", "-key", account.own / "identity.key", "-subj", f"/CN={name}", "-config", "openssl.cnf", "-out", f"{name}.csr")
        self.openssl("ca", "-batch", "-config", "openssl.cnf", "-in", f"{name}.csr", "-out", certificate, "-notext", "-extfile", f"{name}.ext")
        return certificate

    def identity(self, account, name, with_list=True):
        """The table of a host that has a certificate and honours the list."""
        return (f'[identity]\ncertificate = "{self.certify(account, name)}"\nkey = "{account.own / "identity.key"}"\n'
                f'ca = "{self.ca}"\n' + (f'crl = "{self.crl}"\n' if with_list else ""))

    def revoke(self, name):
        self.openssl("ca", "-config", "openssl.cnf", "-revoke", f"{name}.pem")
        self.publish()

    def publish(self):
        """A new list takes the place of the old one."""
        self.openssl("ca", "-gencrl", "-config", "openssl.cnf", "-out", "crl.new")
        os.rename(self.directory / "crl.new", self.crl)
