"""How soon ranks that wait in a collective with one that is killed are out of it: from the killer's
clock to the last survivor's exception.

Four ranks on one node in a loop of all-reduces of plain Gloo; rank 3 is killed with SIGKILL. Rank
3's neighbours see its connections end; the others would wait out the group's timeout, but for the
head's word. By turns with the same program's ranks as plain processes, which nobody tells anything:
of these it is counted how many were out within `--patience` seconds. torchrun's own ranks are told
by SIGTERM, which a rank in a collective does not see before it is out of it.

    python benchmarks/groups/lost_peer.py [--rounds 10] [--patience 3] [--keep]
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from report import keep, settle, summary  # noqa: E402

RANKS, VICTIM, FLOATS = 4, 3, 1 << 20


def loop(folder: str) -> None:
    """A rank: says that it is in the loop, and when it was out of it."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    signal.signal(
        signal.SIGTERM, lambda *_: None
    )  # an error would be raised later, in other code; the end of the collective is measured
    rank, values = dist.get_rank(), torch.ones(FLOATS)
    dist.all_reduce(values)
    say(folder, f"begun.{rank}", os.getpid())
    try:
        while True:
            dist.all_reduce(values)
            values.fill_(1)
    except BaseException as error:
        say(folder, f"out.{rank}", [time.time(), type(error).__name__])
        raise


def say(folder: str, name: str, what) -> None:
    path = pathlib.Path(folder, name)
    path.with_suffix(path.suffix + ".new").write_text(json.dumps(what))
    path.with_suffix(path.suffix + ".new").rename(path)


def awaited(folder: str, name: str, count: int, patience_s: float) -> dict[int, object]:
    """Return the ranks' values under this name, once there are `count` or the patience is over."""
    deadline = time.monotonic() + patience_s
    while True:
        found = {
            int(path.suffix[1:]): json.loads(path.read_text())
            for path in pathlib.Path(folder).glob(f"{name}.[0-9]")
        }
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.005)  # lint-ok: a look at what other processes have written


def killed(folder: str, patience_s: float) -> list[float]:
    """Kills the victim once all are in the loop; the seconds after which each of the survivors that
    came out was out."""
    pids = awaited(folder, "begun", RANKS, 60)
    time.sleep(0.2)  # lint-ok: they are in the middle of it
    begin = time.time()
    os.kill(pids[VICTIM], signal.SIGKILL)
    return sorted(at - begin for at, _ in awaited(folder, "out", RANKS - 1, patience_s).values())


def in_launch(patience_s: float) -> list[float]:
    import troupe
    from troupe.launch import distributed

    def rank(folder: str) -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        loop(folder)

    with tempfile.TemporaryDirectory() as folder:
        handle = distributed(processes=RANKS, remote=True, quiet=True)(rank).submit(folder)
        found = killed(folder, patience_s)
        try:
            handle.result(60)
        except troupe.exceptions.TroupeError:
            return found
    raise AssertionError("a launch with a killed rank has succeeded")


def _plain(rank: int, folder: str, port: int) -> None:
    import torch.distributed as dist

    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS)
    )
    dist.init_process_group("gloo")
    loop(folder)


def as_plain_processes(patience_s: float) -> list[float]:
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=_plain, args=(rank, folder, store.port), daemon=True)
            for rank in range(RANKS)
        ]
        for each in ranks:
            each.start()
        found = killed(folder, patience_s)
        for each in ranks:
            each.kill()
            each.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--patience", type=float, default=3.0)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/lost_peer.json"
    )
    options = parser.parse_args()
    import troupe

    os.environ.pop("TROUPE_ADDRESS", None)
    found: dict[str, list[list[float]]] = {"in a launch": [], "plain processes": []}
    with troupe.init(num_cpus=RANKS):
        in_launch(options.patience)
        for _ in range(options.rounds):
            settle()
            found["in a launch"].append(in_launch(options.patience))
            settle()
            found["plain processes"].append(as_plain_processes(options.patience))
    rows = {}
    for name, rounds in found.items():
        out = sum(map(len, rounds))
        rows[name] = {
            "survivors": len(rounds) * (RANKS - 1),
            "out": out,
            "first": summary([each[0] for each in rounds if each]),
            "last": summary(
                [each[-1] for each in rounds if len(each) == RANKS - 1] or [options.patience]
            ),
        }
    keep("lost_peer", rows, options.keep)


if __name__ == "__main__":
    main()
