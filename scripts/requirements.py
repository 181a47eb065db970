"""Prints the project's requirements of the given extras, so that pyproject.toml is their only list.

Usage: requirements.py examples,test
"""

import pathlib
import sys
import tomllib


def main() -> None:
    root = pathlib.Path(__file__).resolve().parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wanted = list(project["build-system"]["requires"]) + list(project["project"]["dependencies"])
    for extra in filter(None, sys.argv[1].split(",")):
        wanted += project["project"]["optional-dependencies"][extra]
    print("\n".join(dict.fromkeys(wanted)))


if __name__ == "__main__":
    main()
