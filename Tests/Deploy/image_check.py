"""Builds what the Dockerfile describes and runs it. See scripts/image-check, which starts this."""

import argparse
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import dockerfile
from image_root import Builder, Mounts, base, check_this_machine, run, say, timed, weigh

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".build" / "image-check"
#: What the image may add to Debian's.
MOST_BYTES = 90_000_000
NEW_NETWORK = 0x40000000


class Container:
    """Processes in a root that nobody can write to, as the image's user."""

    def __init__(self, root: Path, stage: dockerfile.Stage):
        self.root = root
        self.stage = stage
        self.user = stage.last("USER").text
        self.running: list[subprocess.Popen] = []

    def _command(self, words: list[str]) -> list[str]:
        # --groups=: no supplementary ones. A user other than root has no capability once a program starts.
        enter = ["setpriv", "--no-new-privs", "chroot", f"--userspec={self.user}", "--groups=", str(self.root)]
        return [*enter, *words]

    def run(self, *words: str, timeout: float = 60) -> subprocess.CompletedProcess:
        return subprocess.run(
            self._command(list(words)), env=self.stage.environment(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def start(self, *words: str, **options) -> subprocess.Popen:
        started = subprocess.Popen(
            self._command(list(words)), env=self.stage.environment(), stdin=subprocess.DEVNULL, **options
        )
        self.running.append(started)
        return started

    def announcing(self, *words: str) -> dict:
        """Starts a program whose first line tells where it listens."""
        started = self.start(*words, stdout=subprocess.PIPE, text=True)
        line = started.stdout.readline()
        assert line, f"{words} ended with {started.wait()}"
        return json.loads(line)

    def end(self) -> None:
        for each in self.running:
            each.kill()
            each.wait()


def expect(is_so: bool, what: str, detail: str = "") -> None:
    if not is_so:
        raise SystemExit(f"NOT SO: {what}\n{detail}".rstrip())
    say(f"  {what}")


def until(what: str, is_so, timeout: float = 40) -> None:
    deadline = time.monotonic() + timeout
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"NOT SO within {timeout:g} s: {what}")
        time.sleep(0.1)
    say(f"  {what}")


def no_network() -> None:
    """From here on there is nothing but a loopback device."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS: IFF_UP, see netdevice(7).
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))


def check_program(program: Path, symbols: Path) -> None:
    dynamic = run("readelf", "--dynamic", program, capture_output=True, text=True).stdout
    expect("libswift" not in dynamic, "Swift's libraries are linked in")
    sections = run("readelf", "--sections", "--wide", program, capture_output=True, text=True).stdout
    expect(".symtab" not in sections and ".debug_info" not in sections, "the program is stripped")
    ids = [
        re.search(r"Build ID: (\w{40})", run("readelf", "--notes", file, capture_output=True, text=True).stdout)[1]
        for file in (program, symbols)
    ]
    expect(ids[0] == ids[1], f"the symbols kept aside are those of the program (build id {ids[0]})")
    kept = run("readelf", "--sections", "--wide", symbols, capture_output=True, text=True).stdout
    expect(".symtab" in kept and ".debug_info" in kept, f"and they are there ({symbols.stat().st_size / 1e6:.1f} MB)")


def check_size(layer: Path) -> None:
    sizes = weigh(layer)
    total = sum(sizes.values())
    for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:6]:
        say(f"  {size / 1e6:8.2f} MB  {name}")
    expect(total < MOST_BYTES, f"the image adds {total / 1e6:.1f} MB to its base; {MOST_BYTES / 1e6:g} MB are allowed")


def check_runs(container: Container, secrets: Path, settings: Path) -> None:
    stage = container.stage
    entry = stage.last("ENTRYPOINT").exec_form
    command = stage.last("CMD").exec_form
    health = json.loads(stage.last("HEALTHCHECK").text.partition("CMD")[2])

    uid = container.user.partition(":")[0]
    demo = container.run(*entry, "demo", "--apps", "2", "--rate", "200", "--duration", "3", timeout=120)
    expect(demo.returncode == 0, f"`martlet demo` runs as user {uid}, and ends well", demo.stdout + demo.stderr)
    say("    " + demo.stdout.strip().splitlines()[-1])

    topics = [name for role in ("requests", "results", "invalid-tokens", "dead-letters", "deferred")
              for name in ("--topic", f"push.{role}:2")]  # fmt: skip
    kafka = container.announcing(*entry, "mock-kafka", *topics)["bootstrap_servers"]
    apns = container.announcing(
        *entry, "mock-apns", "--listen=127.0.0.1:0", "--directory=/secrets", "--make-key=ABC123DEFG:DEF123GHIJ",
        "--topic=DEF123GHIJ:com.example.shop",
    )  # fmt: skip
    text = (ROOT / "deploy/compose/martlet.json5").read_text()
    for old, new in (("kafka:9092", kafka), ('host: "apns", port: 2197', f'host: "localhost", port: {apns["port"]}')):
        assert old in text, f"deploy/compose/martlet.json5 has no {old}"
        text = text.replace(old, new)
    (settings / "martlet.json5").write_text(text)
    for file in secrets.iterdir():
        file.chmod(0o440)

    expect(container.run(*health).returncode != 0, "HEALTHCHECK says no while nothing runs")
    service = container.start(*entry, *command, stderr=subprocess.PIPE)
    until("HEALTHCHECK says yes once `martlet run` runs", lambda: container.run(*health).returncode == 0)
    until("`martlet run` is ready", lambda: status("/readyz") == 200)

    request = {"id": "1", "app": "shop-ios", "token": "00112233445566778899aabbccddeeff", "payload": {"aps": {}}}
    run("kcat", "-q", "-P", "-b", kafka, "-t", "push.requests", input=json.dumps(request).encode())
    results: list[str] = []

    def has_result() -> bool:
        got = run("kcat", "-q", "-C", "-b", kafka, "-t", "push.results", "-e", capture_output=True, text=True).stdout
        results[:] = got.splitlines()
        return bool(results)

    until("a request has a result", has_result)
    expect(json.loads(results[0])["status"] == "delivered", "which is `delivered`", results[0])

    # The child of setpriv and chroot is the program itself: both execute it in their own place.
    service.send_signal(getattr(signal, stage.last("STOPSIGNAL").text))
    code = service.wait(40)
    expect(code == 0, f"{stage.last('STOPSIGNAL').text} ends it with 0", service.stderr.read().decode())


def status(path: str) -> int:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:9464{path}", timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    since = time.monotonic()

    stages = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    build = next(stage for stage in stages if stage.name == "build")
    final = stages[-1]
    check_this_machine(build.base)
    with timed("base"):
        lowest = base(final.base, CACHE)
    mounts = Mounts(CACHE / "work")
    # Beyond the image's own, a step has the network settings of whoever builds.
    builder = Builder(ROOT, {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")})
    with timed("build stage"):
        root = mounts.overlay("build", Path("/"))
        builder.build(build, root, {"PATH": os.environ["PATH"], "HOME": "/root"})
    with timed("final stage"):
        root = mounts.overlay("final", lowest)
        run("cp", "/etc/resolv.conf", root / "etc/resolv.conf")
        builder.build(final, root, {"PATH": dockerfile.DEFAULT_PATH})
        (mounts.layer("final") / "etc/resolv.conf").unlink(missing_ok=True)
    program, symbols = (mounts.work / "build/layer/out" / name for name in ("martlet", "martlet.debug"))
    with timed("what is in it"):
        check_program(program, symbols)
        check_size(mounts.layer("final"))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for file in (program, symbols):
            shutil.copy2(file, out)
        with (out / "sbom.json").open("w") as bill:
            run(sys.executable, ROOT / "deploy/sbom.py", program, "--root", mounts.work / "final/root", stdout=bill)
        names = sorted(weigh(mounts.layer("final")).items())
        (out / "image-files.txt").write_text("".join(f"{size:12} /{name}\n" for name, size in names))

    with timed("how it runs"):
        places = mounts.work / "places"
        for place in ("etc/martlet", "secrets"):
            (places / place).mkdir(parents=True)
        # As an engine gives every container.
        (places / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        # No upper layer: nothing can be written, not even by root.
        root = mounts.overlay("run", places, mounts.layer("final"), lowest, writable=False)
        user, group = final.last("USER").text.split(":")
        for place in ("etc/martlet", "secrets"):
            run("mount", "-t", "tmpfs", "-o", f"mode=0750,uid={user},gid={group}", "tmpfs", root / place)
        for shell in ("dash", "bash"):
            run("mount", "--bind", "/dev/null", root / "usr/bin" / shell)
        no_network()
        container = Container(root, final)
        expect(container.run("/usr/bin/touch", "/touched").returncode != 0, "the root cannot be written to")
        expect(container.run("/bin/sh", "-c", "true").returncode != 0, "there is no shell")
        try:
            check_runs(container, root / "secrets", root / "etc/martlet")
        finally:
            container.end()
    say(f"image-check: all is well, {time.monotonic() - since:.0f} s")


if __name__ == "__main__":
    main()
