"""Follows the steps of a Dockerfile in directories, with chroot in place of a container engine. Needs root, and mount
and process namespaces of its own, with which everything ends."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dockerfile
from dockerfile import Instruction, Stage

DEBIAN = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
#: How Debian's official images set up apt and dpkg: no documentation, and nothing left of a download.
BASE_FILES = {
    "etc/dpkg/dpkg.cfg.d/docker": "force-unsafe-io\n"
    + "".join(f"path-exclude {path}/*\n" for path in ("/usr/share/doc", "/usr/share/man", "/usr/share/locale"))
    + "path-include /usr/share/doc/*/copyright\n",
    "etc/apt/apt.conf.d/docker": 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
    'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };\nAcquire::Languages "none";\n',
}


def say(text: str) -> None:
    print(text, flush=True)


def run(*command: object, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], check=True, **options)


def quietly(*command: object, **options) -> None:
    """Shows what it says only if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{command[0]}: exit {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}")


class Mounts:
    """Mounts below one directory; a layer is a directory over others."""

    def __init__(self, work: Path):
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        # A layer may not lie in what is under it, and the lowest of the build is this machine's own root.
        run("mount", "-t", "tmpfs", "-o", "mode=0755,size=90%", "tmpfs", work)

    def overlay(self, name: str, *lower: Path, writable: bool = True) -> Path:
        """The layers under one another, the first on top, with an empty one above where it is to be writable."""
        root = self.work / name / "root"
        root.mkdir(parents=True)
        options = "lowerdir=" + ":".join(map(str, lower))
        if writable:
            for part in ("layer", "scratch"):
                (self.work / name / part).mkdir()
            options += f",upperdir={self.layer(name)},workdir={self.work / name / 'scratch'}"
        run("mount", "-t", "overlay", "-o", options, "overlay", root)
        run("mount", "-t", "proc", "proc", root / "proc")
        run("mount", "--rbind", "/dev", root / "dev")
        return root

    def layer(self, name: str) -> Path:
        """What was written above the others."""
        return self.work / name / "layer"


def base(image: str, cache: Path) -> Path:
    """A root like that of Debian's official image, made by debootstrap; kept for a week."""
    suite = re.fullmatch(r"debian:([a-z]+)-\d{8}-slim", image)
    if not suite:
        raise SystemExit(f"the final stage is from {image}; this check knows debian:SUITE-DATE-slim")
    root = cache / suite[1]
    stamp = cache / f"{suite[1]}.made"
    if stamp.exists() and time.time() - stamp.stat().st_mtime < 7 * 86400:
        return root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    quietly("debootstrap", "--variant=minbase", suite[1], root, DEBIAN)
    for name, text in BASE_FILES.items():
        (root / name).write_text(text)
    (root / "etc/apt/sources.list").write_text(
        f"deb {DEBIAN} {suite[1]} main\ndeb {DEBIAN} {suite[1]}-updates main\ndeb {SECURITY} {suite[1]}-security main\n"
    )
    shell = "apt-get -qq update && apt-get -qq --yes dist-upgrade && apt-get clean && rm -rf /var/lib/apt/lists/*"
    environment = {"PATH": dockerfile.DEFAULT_PATH, "DEBIAN_FRONTEND": "noninteractive"}
    quietly("chroot", root, "/bin/sh", "-c", shell, env=environment)
    stamp.touch()
    return root


def check_this_machine(image: str) -> None:
    """The build stage runs on this machine's own root: it must be what the stage's image is."""
    wanted = re.fullmatch(r"swift:([\d.]+)-([a-z]+)", image)
    if not wanted:
        raise SystemExit(f"the build stage is from {image}; this check knows swift:VERSION-SUITE")
    release = Path("/etc/os-release").read_text()
    if f"VERSION_CODENAME={wanted[2]}" not in release:
        raise SystemExit(f"the build stage wants Debian {wanted[2]}; this machine is another")
    version = run("swift", "--version", capture_output=True, text=True).stdout
    if f"Swift version {wanted[1]} " not in version:
        raise SystemExit(f"the build stage wants Swift {wanted[1]}; this machine has {version.splitlines()[0]}")


class Builder:
    """Carries out the instructions of a stage that change files."""

    def __init__(self, source: Path, environment: dict[str, str]):
        self.source = source
        self.environment = environment
        self.roots: dict[str, Path] = {}
        listed = run(
            "git", "-C", source, "ls-files", "--cached", "--others", "--exclude-standard", "-z", capture_output=True
        ).stdout.decode()
        self.context = [name for name in dockerfile.context(source, listed.split("\0")) if (source / name).is_file()]

    def build(self, stage: Stage, root: Path, environment: dict[str, str]) -> None:
        self.roots[stage.name] = root
        directory = "/"
        for each in stage.instructions:
            match each.keyword:
                case "RUN":
                    say(f"  line {each.line}: RUN {each.text[:70]}")
                    self._run(each, root, directory, {**environment, **stage.variables()})
                case "COPY":
                    self._copy(each, root, directory)
                case "WORKDIR":
                    directory = os.path.join(directory, each.text)
                    self._inside(root, directory).mkdir(parents=True, exist_ok=True)
                case "ARG" | "LABEL" | "ENV" | "USER" | "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK" | "ENTRYPOINT" | "CMD":
                    pass
                case other:
                    raise SystemExit(f"line {each.line}: this check does not know {other}")

    @staticmethod
    def _inside(root: Path, path: str) -> Path:
        return root / path.lstrip("/")

    def _run(self, each: Instruction, root: Path, directory: str, environment: dict[str, str]) -> None:
        words = each.exec_form or ["/bin/sh", "-c", each.text]
        enter = f"import os; os.chroot({str(root)!r}); os.chdir({directory!r}); os.execvp({words[0]!r}, {words!r})"
        log = root.parent / f"line-{each.line}.log"
        with log.open("wb") as output:
            status = subprocess.run(
                [sys.executable, "-c", enter], env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, check=False,
            ).returncode  # fmt: skip
        if status:
            raise SystemExit(f"line {each.line} of the Dockerfile: exit {status}\n{log.read_text()[-4000:]}")

    def _copy(self, each: Instruction, root: Path, directory: str) -> None:
        *sources, target = each.words
        destination = self._inside(root, os.path.join(directory, target))
        for source in sources:
            if "from" in each.flags:
                origin = self._inside(self.roots[each.flags["from"]], source)
                self._place(origin, destination, is_directory=target.endswith("/"))
                continue
            plain = source.removeprefix("./").rstrip("/")
            inside = [name for name in self.context if name == plain or name.startswith(f"{plain}/")]
            if not inside:
                raise SystemExit(f"line {each.line}: the builder does not see {source}; look at .dockerignore")
            for name in inside:
                if name == plain:
                    self._place(self.source / name, destination, is_directory=target.endswith("/"))
                else:
                    self._place(self.source / name, destination / name.removeprefix(f"{plain}/"), is_directory=False)

    @staticmethod
    def _place(origin: Path, destination: Path, *, is_directory: bool) -> None:
        place = destination / origin.name if is_directory else destination
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin, place)
        os.chown(place, 0, 0)


def weigh(layer: Path) -> dict[str, int]:
    """Bytes of each regular file of a layer."""
    sizes = {}
    for directory, _, names in os.walk(layer):
        for name in names:
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                sizes[str(path.relative_to(layer))] = path.stat().st_size
    return sizes


@contextmanager
def timed(what: str):
    since = time.monotonic()
    say(f"{what} …")
    yield
    say(f"{what}: {time.monotonic() - since:.1f} s")
