"""Pins the Python tools of the tests: writes build.txt and requirements.txt from build.in and tools.in.

Arguments: Pythons with pip, as in `pin.py python3.11 python3.13`: packages that only one of them needs are pinned too.
Each package gets the hashes of its files for CPython 3.11 to 3.14 on Linux, x86_64 and aarch64: wheels, or the source
if there is no wheel.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ["3.11", "3.12", "3.13", "3.14"]
MACHINES = ["x86_64", "aarch64"]
# Wheels name the oldest glibc they run with. Debian 12 has 2.36; a newer system runs the same wheels.
GLIBC_TAGS = [f"manylinux_2_{minor}" for minor in range(36, 4, -1)] + ["manylinux2014", "manylinux2010", "manylinux1"]


def chosen(python, *arguments):
    """What pip would install: {name: (version, hash)}."""
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-", *arguments]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {
        package["metadata"]["name"].lower().replace("_", "-").replace(".", "-"): (
            package["metadata"]["version"],
            package["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for package in report["install"]
    }


def resolved(pythons, sources):
    """The packages that the sources need on any of these Pythons: {name: version}."""
    versions = {}
    for python in pythons:
        known = [f"{name}=={version}" for name, version in versions.items()]
        files = [argument for source in sources for argument in ("-r", str(HERE / source))]
        for name, (version, _) in chosen(python, *files, *known).items():
            versions[name] = version
    return versions


def hashes(python, versions):
    """The hashes of all files that a machine may choose: {name: {hash}}."""
    found = {name: set() for name in versions}
    pins = [f"{name}=={version}" for name, version in versions.items()]
    for version, machine in itertools.product(VERSIONS, MACHINES):
        place = [argument for tag in GLIBC_TAGS for argument in ("--platform", f"{tag}_{machine}")]
        target = ["--python-version", version, "--no-deps", "--target", "unused", *place]
        for name, (_, digest) in chosen(python, *target, *pins).items():
            found[name].add(digest)
    return found


def write(file, head, versions, digests):
    lines = [f"# Written by pin.py, of {head}."]
    for name in sorted(versions):
        lines.append(f"{name}=={versions[name]} \\")
        lines += [f"    --hash=sha256:{digest} \\" for digest in sorted(digests[name])]
        lines[-1] = lines[-1].removesuffix(" \\")
    (HERE / file).write_text("\n".join(lines) + "\n", encoding="ascii")


def main():
    pythons = sys.argv[1:]
    versions = resolved(pythons, ["build.in", "tools.in"])
    digests = hashes(pythons[0], versions)
    build = {name: versions[name] for name in resolved(pythons, ["build.in"])}
    write("build.txt", "build.in", build, digests)
    write("requirements.txt", "tools.in", versions, digests)


if __name__ == "__main__":
    main()
