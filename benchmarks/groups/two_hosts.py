"""A cluster over two hosts that are network namespaces of this machine, joined by virtual cables;
needs root."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
from fault_proxy import enter  # noqa: E402
from namespaces import Hosts, why_not  # noqa: E402

TROUPE = [sys.executable, "-m", "troupe"]


@contextlib.contextmanager
def cluster(cpus: int) -> Iterator[None]:
    """A head on the first host and a node with so many CPUs on each; this thread goes on on the
    first host and is connected. For good: it does not come back from there."""
    import troupe

    if reason := why_not():
        raise SystemExit(f"no two hosts: {reason}")
    with Hosts("one", "two") as hosts, tempfile.TemporaryDirectory(prefix="trp-") as home:
        os.environ.update(TROUPE_HOME=home, XDG_RUNTIME_DIR=home)
        try:
            listen = ["--listen", hosts["one"].address, "--port", "0"]
            head = json.loads(
                hosts["one"]
                .run([*TROUPE, "start", "--head", "--no-worker", *listen, "--json"])
                .stdout
            )
            token = pathlib.Path(home, "token")
            token.touch(mode=0o600)
            token.write_text(hosts["one"].run([*TROUPE, "token", "create"]).stdout)
            for name in ("one", "two"):
                hosts[name].run(
                    [
                        *TROUPE,
                        "start",
                        "--address",
                        head["address"],
                        "--token-file",
                        str(token),
                        "--node-name",
                        name,
                        "--num-cpus",
                        str(cpus),
                        "--force-tcp",
                    ]
                )
            enter(hosts["one"].namespace)
            troupe.init(head["address"])
            yield
            troupe.shutdown()
        finally:
            subprocess.run([*TROUPE, "stop", "--all"], capture_output=True)
