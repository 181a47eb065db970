"""A launch whose ranks import a heavy module: imported by the ranks, and imported ahead
(`preimport=`), at the first use and at later ones.

The module is --module (transformers, lightning, sklearn.ensemble ...), which has to be installed
here. "no import" is the same launch of a function that imports nothing: what is left of a launch
where an import costs nothing.

    python benchmarks/preimport.py [--rounds 5] [--module sklearn.ensemble] [--keep]
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from contender import options_of  # noqa: E402
from report import keep, settle, summary  # noqa: E402


def figures(module: str, rounds: int) -> dict[str, list[float]]:
    """Seconds from the call to the results, of 2 ranks, on a node of its own for each round:
    "first" is the first of that node."""
    import troupe
    from troupe.launch import distributed

    def imports() -> None:
        import importlib

        importlib.import_module(module)

    def nothing() -> None:
        pass

    def seconds(function, **options) -> float:
        launched = distributed(processes=2, remote=True, quiet=True, **options)(function)
        begin = time.perf_counter()
        launched.distributed()
        return time.perf_counter() - begin

    taken: dict[str, list[float]] = {
        "no import": [],
        "without preimport": [],
        "preimport, first": [],
        "preimport, later": [],
        "preimport of the node, first": [],
    }
    for _ in range(rounds):
        with troupe.init(num_cpus=4, log_to_driver=False):
            seconds(nothing)  # the node's zygote is up after it
            settle(3.0)
            taken["no import"].append(seconds(nothing))
            taken["without preimport"].append(seconds(imports))
            taken["preimport, first"].append(seconds(imports, preimport=[module]))
            settle(3.0)
            taken["preimport, later"].append(seconds(imports, preimport=[module]))
        with troupe.init(num_cpus=4, log_to_driver=False, preimport=[module]):
            _await_preimport(troupe)
            settle(3.0)
            taken["preimport of the node, first"].append(seconds(imports, preimport=[module]))
    return taken


def _await_preimport(troupe) -> None:
    while not (said := troupe.state.list_nodes()[0]["preimport"]) or "being made" in said[0]:
        settle(0.5)
    if ": ready, " not in said[0]:
        raise SystemExit(f"the node has no such process: {said[0]}")


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--module", default="sklearn.ensemble")
    options = parser.parse_args()
    taken = figures(options.module, options.rounds)
    keep(
        "preimport",
        {
            f"{options.module}: {name}": {"troupe": summary(seconds)}
            for name, seconds in taken.items()
        },
        options.keep,
    )


if __name__ == "__main__":
    main()
