"""Parts shared by the tests of requirements: wheels made here, and an installer that records each
of its runs."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

_INSTALLER = """#!{python}
import os, sys
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if os.path.exists({gate!r}):
    open({gate!r}).read()  # until the test lets it go on
words = sys.argv[1:]
python = words[words.index("--python") + 1]
os.execv(python, [python, "-m", "pip", "install", "--quiet", "--no-warn-script-location", "--no-index", "-r", words[words.index("-r") + 1]])
"""


def wheel(
    folder: Path,
    name: str = "tiny_thing",
    version: str = "1.0",
    *,
    requires: Sequence[str] = (),
    command: str = "",
    data_bytes: int = 0,
) -> str:
    """A wheel with one module, whose VALUE is its version, and a command that prints it; its path.

    `data_bytes`: of one more file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VALUE = {version!r}\ndef main():\n    print('the command of', VALUE)\n",
        f"{info}/METADATA": "\n".join(
            [
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
                *(f"Requires-Dist: {each}" for each in requires),
                "",
            ]
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: "
        "py3-none-any\n",
    }
    if command:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{command} = {name}:main\n"
    if data_bytes:
        files[f"{name}_data.bin"] = "x" * data_bytes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for each, text in files.items():
            made.writestr(each, text)
        made.writestr(
            f"{info}/RECORD", "".join(f"{each},,\n" for each in (*files, f"{info}/RECORD"))
        )
    return str(path)


class Installer:
    """A `uv` that tells of its runs in `log`, and does what pip does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.log, self.gate = folder, folder / "log", folder / "gate"
        program = folder / "uv"
        program.write_text(
            _INSTALLER.format(python=sys.executable, log=str(self.log), gate=str(self.gate))
        )
        program.chmod(0o755)

    def variables(self) -> dict[str, str]:
        """Return the variables of an environment in which the installer is found."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}", "UV_FIND_LINKS": str(self.folder)}

    def runs(self) -> list[str]:
        """The words of each run so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []
