"""Look up what the image installs in a database of known vulnerabilities: python scripts/scan.py FOLDER_OF_PROGRAMS

Exit 1 if there is one. Where the database cannot be asked this is said: nothing found would look the same.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOCKS = Path(__file__).parent.parent / "deploy" / "locks"


def audit(program: Path, lock: Path) -> tuple[list[dict[str, Any]], str]:
    """Return what pip-audit says of each package, or nothing and why it says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        line: list[str | Path] = [
            program,
            "--requirement",
            lock,
            "--require-hashes",
            "--disable-pip",
            "--progress-spinner",
            "off",
        ]
        done = subprocess.run(
            [*line, "--format", "json", "--output", found], capture_output=True, text=True, check=False
        )
        try:
            packages: list[dict[str, Any]] = json.loads(found.read_bytes())["dependencies"]
        except (OSError, ValueError, KeyError):
            return [], (done.stderr.strip().splitlines() or ["it wrote nothing"])[-1]
    return packages, ""


def report(lock: str, packages: list[dict[str, Any]], reason: str) -> tuple[list[str], bool]:
    """Return what there is to say of a file, and whether something in it is vulnerable."""
    found = [
        f"{lock}: {package['name']} {package['version']} is vulnerable: {each['id']}, mended in "
        f"{', '.join(each.get('fix_versions') or ['no version'])}"
        for package in packages
        for each in package.get("vulns", ())
    ]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if len(skipped) == len(packages):
        why = reason or f"the database knows none of {len(packages)} packages, as if it could not be reached from here"
        return [f"{lock}: the scan for vulnerabilities was skipped: {why}"], False
    unknown = f"; the database does not know {', '.join(skipped)}" if skipped else ""
    found.append(f"{lock}: {len(packages) - len(skipped)} of {len(packages)} packages looked up{unknown}")
    return found, any(package.get("vulns") for package in packages)


def main(programs: Path) -> int:
    vulnerable = False
    for path in sorted(LOCKS.glob("*.txt")):
        lines, bad = report(path.stem, *audit(programs / "pip-audit", path))
        vulnerable |= bad
        sys.stdout.write("".join(f"scan: {line}\n" for line in lines))
    return int(vulnerable)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
