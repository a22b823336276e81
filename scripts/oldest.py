"""Print constraints to the oldest version of each package that pyproject.toml allows: of numpy>=1.26 numpy==1.26.*."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
# For those who work on textcls, who have the newest.
NOT_INSTALLED = "dev"


def oldest(root: Path = ROOT) -> list[str]:
    """Return a constraint a package, of the dependencies of textcls and of its extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [needs for name, needs in project["optional-dependencies"].items() if name != NOT_INSTALLED]
    needed = [Requirement(need) for needs in (project["dependencies"], *extras) for need in needs]
    least = {one.name: spec.version for one in needed for spec in one.specifier if spec.operator == ">="}
    return [f"{name}=={version}.*" for name, version in sorted(least.items())]


if __name__ == "__main__":
    print("\n".join(oldest()))  # noqa: T201
