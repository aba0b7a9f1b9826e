"""A facility's authority, made with the openssl command: certificates with any dates."""
import subprocess


def openssl(*arguments, directory):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=directory)


class Authority:
    """Its files stand in `directory`, which it makes."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        (directory / "index").touch()
        (directory / "ca.cnf").write_text(
            "[ca]\ndefault_ca = us\n[us]\ndatabase = index\nserial = serial\nnew_certs_dir = .\ncertificate = ca.pem\nprivate_key = ca.key\n"
            "default_md = sha256\npolicy = any\nunique_subject = no\n[any]\ncommonName = supplied\n"
            "[req]\ndistinguished_name = none\n[none]\n[own]\nbasicConstraints = critical,CA:TRUE\nkeyUsage = keyCertSign,cRLSign\n")
        (directory / "serial").write_text("01\n")
        self.key("ca.key")
        # Older than what it signs: then its own dates are nobody's reason.
        openssl("req", "-new", "-key", "ca.key", "-subj", "/CN=facility", "-config", "ca.cnf", "-out", "ca.csr", directory=directory)
        openssl("ca", "-batch", "-config", "ca.cnf", "-selfsign", "-in", "ca.csr", "-extensions", "own", "-startdate", "20200101000000Z",
                "-enddate", "20491231000000Z", "-out", "ca.pem", "-notext", directory=directory)

    def key(self, name):
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name, directory=self.directory)
        (self.directory / name).chmod(0o600)

    def issue(self, name, begins, ends, host):
        """From one time to another (time.struct_time); gives the lines of [identity]."""
        self.key(f"{name}.key")
        (self.directory / f"{name}.ext").write_text(f"basicConstraints = critical,CA:FALSE\nsubjectAltName = {host}\n")
        openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-config", "ca.cnf", "-out", f"{name}.csr", directory=self.directory)
        stamp = "{0.tm_year:04}{0.tm_mon:02}{0.tm_mday:02}{0.tm_hour:02}{0.tm_min:02}{0.tm_sec:02}Z"
        openssl("ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-extfile", f"{name}.ext", "-startdate", stamp.format(begins), "-enddate",
                stamp.format(ends), "-out", f"{name}.pem", "-notext", directory=self.directory)
        return (f'[identity]\ncertificate = "{self.directory}/{name}.pem"\nkey = "{self.directory}/{name}.key"\n'
                f'ca = "{self.directory}/ca.pem"\n')
