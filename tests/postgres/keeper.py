"""A PostgreSQL server that lives exactly as long as whoever asked for it.

Run as a program of its own: `keeper.py FOLDER SETTINGS`. The one who asks holds a lock on `FOLDER/alive`. The keeper unpacks
PostgreSQL where none is given, starts a server, writes where it is to `FOLDER/server.json`, and waits for that lock. The
kernel lets go of it however its holder ends, so even a test run that was killed leaves no server and no data behind.
Only the standard library is imported: it must start quickly, and it must not depend on what it helps to test.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

START_SECONDS = 60
PORTS_TRIED = 3
PORTS = range(20_000, 32_000)
"""Below those the kernel gives to outgoing connections: a server that was stopped finds its port free again."""
SERVICE_ACCOUNTS = ("postgres", "nobody")
"""PostgreSQL refuses to run as root; the first of these that exists runs it then."""
PLACES = (None, "/tmp", "/var/tmp")
"""Where the data may lie: where temporary files go, or where that is closed to the service account, the usual ones."""
FOR_TESTS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "scram_iterations": "1",
    "autovacuum_naptime": "1h",
    "timezone": "UTC",
    "log_min_messages": "warning",
}
"""Speed instead of durability. A test that is about durability asks for a server of its own and says otherwise."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a server is and what it runs from: all that is needed to reach, stop and start it."""

    binaries: str
    template: str
    data: str
    sockets: str
    host: str
    port: int
    password: str
    account: str
    settings: Mapping[str, str]

    @property
    def admin_url(self) -> str:
        """The URL of the server's superuser."""
        return f"postgresql://postgres:{self.password}@{self.host}:{self.port}/postgres"


def service_account() -> str:
    """Who runs the server: oneself, or for root an account without rights."""
    if os.geteuid() != 0:
        return ""
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in SERVICE_ACCOUNTS:
        if name in known:
            return name
    raise RuntimeError(f"PostgreSQL does not run as root, and this machine has none of the accounts {SERVICE_ACCOUNTS}")


def run_as(account: str, arguments: Sequence[str | Path], home: str, seconds: float = START_SECONDS) -> None:
    """Run a program as an account (as oneself if it is ""), in a clean environment."""
    entry = pwd.getpwnam(account) if account else None
    who: dict[str, Any] = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []} if entry else {}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, "LC_ALL": "C"}
    environment["LD_LIBRARY_PATH"] = str(Path(arguments[0]).parent.parent / "lib")  # pg0's libraries need one another
    # Into a file and not a pipe: the server inherits its starter's output, and a pipe would stay open as long as it runs.
    with tempfile.TemporaryFile() as printed:
        ended = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
            cwd=home, env=environment, timeout=seconds, check=False, **who,
        )  # fmt: skip
        printed.seek(0)
        told = printed.read().decode(errors="replace")
    if ended.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))} failed with {ended.returncode}:\n{told}")


def open_place(account: str) -> Path:
    """A new folder that belongs to the account, in a place it can reach."""
    for parent in PLACES:
        place = Path(tempfile.mkdtemp(prefix="engram-pg-", dir=parent))
        if account:
            shutil.chown(place, account)
        try:
            run_as(account, ["touch", place / "reached"], str(place))
        except (RuntimeError, OSError):
            shutil.rmtree(place, ignore_errors=True)
        else:
            return place
    raise RuntimeError(f"no temporary folder that {account or 'this user'} can write: tried {PLACES}")


def free_port() -> int:
    """A port nobody listens on."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"none of 100 ports from {PORTS.start} to {PORTS.stop} is free")


def unpack(place: Path, account: str, password: str) -> tuple[Path, Path]:
    """PostgreSQL with pgvector out of the pg0 package; its programs, and an initialised cluster that is not running.

    pg0 unpacks only when it starts a server, so it starts one that nobody can reach, which is stopped again.
    """
    import pg0

    program, template = place / "pg0", place / "template"
    shutil.copy(pg0._find_pg0(), program)  # where the account can reach it, whoever owns the checkout
    program.chmod(0o755)
    closed = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={place}"]
    login = ["--username", "postgres", "--password", password, "--port", str(free_port())]
    run_as(account, [program, "start", "--data-dir", template, *login, *closed], str(place))
    binaries = next((place / ".pg0" / "installation").glob("*/bin"))
    run_as(account, [binaries / "pg_ctl", "stop", "-D", template, "-m", "fast"], str(place))
    allowed = ("local all all", "host all all 127.0.0.1/32", "host replication all 127.0.0.1/32")
    (template / "pg_hba.conf").write_text("".join(f"{line} scram-sha-256\n" for line in allowed))
    return binaries, template


def start(kept: Kept) -> None:
    """Start the server, and return when it answers."""
    addresses = {"listen_addresses": kept.host, "port": str(kept.port), "unix_socket_directories": kept.sockets}
    options = " ".join(f"-c {name}={value}" for name, value in {**kept.settings, **addresses}.items())
    command = [f"{kept.binaries}/pg_ctl", "start", "-D", kept.data, "-w", "-t", str(START_SECONDS)]
    try:
        run_as(kept.account, [*command, "-l", f"{kept.sockets}/log", "-o", options], kept.sockets, START_SECONDS + 5)
    except RuntimeError as failed:
        log = Path(kept.sockets, "log")
        raise RuntimeError(f"{failed}\n{log.read_text(errors='replace') if log.exists() else ''}") from failed


def stop(kept: Kept, mode: str = "fast") -> None:
    """Stop the server; `immediate` is what a crash looks like."""
    command = [f"{kept.binaries}/pg_ctl", "stop", "-D", kept.data, "-m", mode, "-w", "-t", str(START_SECONDS)]
    run_as(kept.account, command, kept.sockets, START_SECONDS + 5)


def processes_in(folder: str) -> list[int]:
    """The processes that work in a folder or below it; those of a server work in its data directory."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self/cwd").exists() else ():
        # It may have ended, or be somebody else's.
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"{os.readlink(entry / 'cwd')}/".startswith(f"{folder}/"):
                found.append(int(entry.name))
    return sorted(found)


def send(number: signal.Signals, pids: Sequence[int]) -> None:
    """A signal to each of these processes that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill(kept: Kept) -> None:
    """End every process of the server with SIGKILL, as a machine without power does: no word to anybody, nothing tidied up."""
    shared = _shared_memory(kept)
    _end(kept.data)
    # What a reboot would do.
    if shared is not None:
        ctypes.CDLL(None).shmctl(shared, 0, None)
    for left in (Path(kept.data, "postmaster.pid"), Path(kept.sockets, f".s.PGSQL.{kept.port}.lock")):
        left.unlink(missing_ok=True)


def _end(folder: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while running := processes_in(folder):
        send(signal.SIGKILL, running)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {running} in {folder} do not end")


def _shared_memory(kept: Kept) -> int | None:
    """The number of the server's segment of System V memory, which outlives it."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(kept.data, "postmaster.pid").read_text().splitlines()[6].split()[1])
    return None


def copy(primary: Kept, standby: Kept) -> None:
    """Make the standby's data anew: the primary's as they are now. Once started, it follows the primary."""
    shutil.rmtree(standby.data, ignore_errors=True)
    command = [f"{standby.binaries}/pg_basebackup", "-D", standby.data, "-d", primary.admin_url]
    run_as(standby.account, [*command, "-c", "fast", "-X", "stream", "-R", "--no-sync"], standby.sockets)


def promote(kept: Kept) -> None:
    """Let a standby follow nobody any more, and return when it takes writes."""
    command = [f"{kept.binaries}/pg_ctl", "promote", "-D", kept.data, "-w", "-t", str(START_SECONDS)]
    run_as(kept.account, command, kept.sockets, START_SECONDS + 5)


def start_on_a_free_port(kept: Kept) -> Kept:
    """Start the server; a port somebody else took in the meantime is no reason to give up."""
    for _ in range(PORTS_TRIED - 1):
        try:
            start(kept)
        except RuntimeError:
            kept = replace(kept, port=free_port())
        else:
            return kept
    start(kept)
    return kept


def prepare(place: Path, account: str, settings: Mapping[str, Any]) -> Kept:
    """A cluster to start: from programs that are there already, or unpacked for it."""
    wanted = {**FOR_TESTS, **settings["server"]}
    if settings["like"]:
        like = Kept(**settings["like"])
        binaries, template, password = Path(like.binaries), Path(like.template), like.password
    else:
        password = secrets.token_hex(8)
        binaries, template = unpack(place, account, password)
    data = place / "data"
    kept = Kept(
        str(binaries), str(template), str(data), str(place), "127.0.0.1", free_port(), password, account, wanted
    )  # fmt: skip
    if settings["follows"]:
        copy(Kept(**settings["follows"]), kept)
    else:
        run_as(account, ["cp", "-a", template, data], str(place))
    return kept


def keep(folder: Path, settings: Mapping[str, Any]) -> None:
    """Start a server, say where it is, stop it when nobody holds `alive` any more."""
    account = service_account()
    place = open_place(account)
    kept = None
    try:
        kept = prepare(place, account, settings)
        kept = start_on_a_free_port(kept)
        report = folder / "server.tmp"
        report.write_text(json.dumps(asdict(kept)))
        report.rename(folder / "server.json")
        with (folder / "alive").open() as alive:
            fcntl.flock(alive, fcntl.LOCK_SH)
    finally:
        if kept is not None:
            _put_away(kept)
        shutil.rmtree(place)
    shutil.rmtree(folder)


def _put_away(kept: Kept) -> None:
    """Stop a server, in whatever state a test has left it."""
    send(signal.SIGCONT, processes_in(kept.data))
    if Path(kept.data, "postmaster.pid").exists():
        with contextlib.suppress(RuntimeError):  # a test has killed it: its file is there, it is not
            stop(kept, "immediate")
    kill(kept)
    _end(kept.sockets)  # what a test that was killed has begun there


def main() -> None:
    """Keep a server until it is no longer wanted; whoever waits for the end sees `keeper` vanish."""

    def ended(signal_number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signal_number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ended)
    folder = Path(sys.argv[1])
    try:
        keep(folder, json.loads(sys.argv[2]))
    except BaseException:
        traceback.print_exc()  # before `keeper` vanishes: whoever waits for that reads the log next
        sys.stderr.flush()
        raise SystemExit(1) from None
    finally:
        (folder / "keeper").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
