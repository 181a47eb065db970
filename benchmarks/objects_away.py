"""Values between two hosts: arguments that an actor of another host gets, results that come from
there, by size.

Both hosts are this machine: the nodes share no Unix socket (--force-tcp), so that a value is copied
over TLS, as it is between machines. Floors of the same run: a plain TCP connection over loopback,
and TLS with the same cipher over it (Python's ssl, one process on either end). With --ray PYTHON
(an interpreter that has Ray 2.60 and numpy) Ray's two raylets of one machine do the same, round by
round; what they send is not encrypted.

    python benchmarks/objects_away.py [--rounds 5] [--ray /path/to/python] [--keep]
"""

import os
import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from contender import Contender, options_of, start_head, troupe_command  # noqa: E402
from report import keep, settle  # noqa: E402

SIZES = {"100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000, "100 MB": 100_000_000}
SECONDS = 1.0

# Each line "KIND BYTES SECONDS" is a round, answered with values a second. The values are new each
# time: none is there already.
ROUNDS = """
import numpy as np

class Far:
    def take(self, value):
        return value.nbytes
    def make(self, size):
        return np.zeros(size, dtype=np.uint8)

far = place(Far)
assert get(far.take.remote(np.zeros(10)), timeout=60) == 80
print("ready", flush=True)
for line in sys.stdin:
    kind, size, seconds = line.split()[0], int(line.split()[1]), float(line.split()[2])
    value, done, begin = np.zeros(size, dtype=np.uint8), 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        if kind == "argument":
            assert get(far.take.remote(value), timeout=60) == size
        else:
            assert get(far.make.remote(size), timeout=60).nbytes == size
        done += 1
    print(done / (time.perf_counter() - begin), flush=True)
"""

RAY_SCRIPT = (
    """
import sys, time
import ray
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1, resources={"far": 1})
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
cluster.wait_for_nodes()
get = ray.get
def place(cls):
    return ray.remote(cls).options(resources={"far": 1}).remote()
"""
    + ROUNDS
    + """
ray.shutdown()
cluster.shutdown()
"""
)

TROUPE_SCRIPT = (
    """
import sys, time
import troupe
troupe.init(sys.argv[1])
get = troupe.get
def place(cls):
    return troupe.remote(cls).options(resources={"far": 1}).remote()
"""
    + ROUNDS
    + """
troupe.shutdown()
"""
)


def certificate(folder: str) -> tuple[str, str]:
    """A key and a certificate for the floor's TLS."""
    key, shown = f"{folder}/key.pem", f"{folder}/certificate.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=floor",
            "-keyout",
            key,
            "-out",
            shown,
        ],
        check=True,
        capture_output=True,
    )
    return key, shown


def floor(size: int, folder: str, tls: bool) -> float:
    """Values a second, sent by a process of its own and read here into memory that is used
    again."""
    listener = socket.create_server(("127.0.0.1", 0))
    key, shown = certificate(folder) if tls else ("", "")
    sender = os.fork()
    if sender == 0:
        connection: socket.socket = socket.create_connection(listener.getsockname())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection)
        value = bytes(size)
        try:
            while connection.recv(1):
                connection.sendall(value)
        finally:
            os._exit(0)
    connection, _ = listener.accept()
    listener.close()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown, key)
        connection = context.wrap_socket(connection, server_side=True)
    into, done = memoryview(bytearray(size)), 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        connection.sendall(b"n")
        read = 0
        while read < size:
            read += connection.recv_into(into[read:])
        done += 1
    rate = done / (time.perf_counter() - begin)
    connection.close()
    os.waitpid(sender, 0)
    return rate


def start_cluster(home: str) -> str:
    address, token = start_head(home, "--no-worker")
    troupe_command(
        home,
        "start",
        "--address",
        address,
        "--token-file",
        token,
        "--node-name",
        "far",
        "--num-cpus",
        "1",
        "--resources",
        '{"far": 1}',
        "--force-tcp",
    )
    return address


def row(rates: dict[str, list[float]], size: int) -> dict:
    median = {name: statistics.median(each) for name, each in rates.items()}
    shown: dict = {f"{name}_mb_per_s": round(rate * size / 1e6, 1) for name, rate in median.items()}
    shown["troupe_ms"] = round(1e3 / median["troupe"], 3)
    shown["of_tls_floor"] = round(median["troupe"] / median["floor_tls"], 2)
    if "ray" in median:
        shown["times_ray"] = round(median["troupe"] / median["ray"], 1)
    return shown


def main() -> None:
    options = options_of(__doc__).parse_args()
    rows: dict = {}
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        address = start_cluster(home)
        os.environ["TROUPE_HOME"] = home
        contenders = {"troupe": Contender(sys.executable, TROUPE_SCRIPT, address)}
        try:
            if options.ray:
                contenders["ray"] = Contender(options.ray, RAY_SCRIPT)
            for kind in ("argument", "result"):
                for label, size in SIZES.items():
                    rates: dict[str, list[float]] = {
                        name: [] for name in (*contenders, "floor_tcp", "floor_tls")
                    }
                    for number in range(options.rounds + 1):  # the first is for warmth
                        taken = {}
                        for name, contender in contenders.items():
                            settle()
                            taken[name] = contender.round(kind, size, SECONDS)
                        taken["floor_tcp"] = floor(size, home, tls=False)
                        taken["floor_tls"] = floor(size, home, tls=True)
                        if number > 0:
                            for name, rate in taken.items():
                                rates[name].append(rate)
                    rows[f"{kind}, {label}"] = row(rates, size)
            for contender in contenders.values():
                contender.end()
        finally:
            troupe_command(home, "stop", "--all")
    keep("objects_away", rows, options.keep)


if __name__ == "__main__":
    main()
