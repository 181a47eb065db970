"""Compiles actors/train/device_digest.cu to PTX, and writes device_digest_ptx.h beside it.

    scripts/device_digest.py            writes it
    scripts/device_digest.py --check    exit code 1 where it is of another source, or ptxas does not
                                        take it for a GPU of today

Needs clang-19, nothing of CUDA's; ptxas where there is one (`--ptxas FILE`; torch's and triton's
packages bring it). PTX 6.0 for compute capability 6.0, which every driver of CUDA 12 and later
compiles for its GPU.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "actors/train/device_digest.cu"
HEADER = SOURCE.with_name("device_digest_ptx.h")
COMPILER = "clang++-19"
GPUS = ("sm_75", "sm_80", "sm_90", "sm_100")
BEFORE = """// device_digest.cu as PTX, made by scripts/device_digest.py: not to be edited.
#pragma once

namespace troupe::train {

inline constexpr char kDeviceDigestPtx[] = R"ptx("""
AFTER = """)ptx";

}  // namespace troupe::train
"""


def compiled() -> str:
    """The PTX, without comments."""
    line = [
        COMPILER,
        "-x",
        "cuda",
        "--cuda-device-only",
        "--cuda-gpu-arch=sm_60",
        "--cuda-feature=+ptx60",
        "-nocudainc",
        "-nocudalib",
        "-Wno-unknown-cuda-version",
        "-std=c++20",
        "-O2",
        "-S",
        str(SOURCE),
        "-o",
        "-",
    ]
    text = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    lines = [re.sub(r"\s*//.*", "", each).rstrip().replace("\t", " ") for each in text.splitlines()]
    return "\n".join(each for each in lines if each) + "\n"


def assemble(ptxas: str, ptx: str) -> None:
    """Raises CalledProcessError where NVIDIA's assembler does not take it."""
    for gpu in GPUS:
        subprocess.run(
            [ptxas, f"-arch={gpu}", "-o", "/dev/null", "/dev/stdin"],
            input=ptx,
            text=True,
            check=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ptxas", default="")
    options = parser.parse_args()
    ptx = compiled()
    if options.ptxas:
        assemble(options.ptxas, ptx)
    text = BEFORE + ptx + AFTER
    if not options.check:
        HEADER.write_text(text)
    elif HEADER.read_text() != text:
        print(
            f"{HEADER.relative_to(ROOT)} is not what {COMPILER} makes of {SOURCE.name}: run "
            "scripts/device_digest.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
