"""Names say what a thing is: no class is called Manager, Helper or Util."""

import re

import tree

BANNED = re.compile(r"^\s*(?:class|struct)\s+(\w*(?:Manager|Helper|Utils?))\b", re.M)
RAYS_OWN_NAMES: set[str] = set()


def main() -> None:
    findings, paths = [], tree.files(".h", ".cc", ".py")
    for path in paths:
        for match in BANNED.finditer(path.read_text()):
            if match.group(1) not in RAYS_OWN_NAMES:
                findings.append(f"{tree.relative(path)}: {match.group(1)}: name what it does")
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
