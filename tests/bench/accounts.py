"""Accounts with identities of their own, as `ccixfer keygen` makes them."""
import os
import subprocess

from harness import BINARY


class Accounts:
    """Those of one set-up, by name: what the environment of their processes has, and how one names another in its configuration."""

    def __init__(self, bench, *names):
        self.directory, self.ids = bench.directory, {}
        for name in names:
            self.place(name).mkdir(parents=True)
            self.command(name, "keygen")
            self.ids[name] = self.command(name, "id").strip()

    def place(self, name):
        return self.directory / f"account-{name}" / "ccixfer"

    def key(self, name):
        return self.place(name) / "identity.key"

    def env(self, name):
        home = str(self.place(name).parent)
        return {"XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home}

    def command(self, name, *arguments):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=True, env={**os.environ, **self.env(name)}).stdout

    def peer(self, name, *keys):
        """The table of that account in the configuration of another."""
        return "\n".join([f"[peer.{name}]", f'id = "{self.ids[name]}"', *keys, ""])

    def configure(self, name, text):
        (self.place(name) / "ccixfer.toml").write_text(text)
