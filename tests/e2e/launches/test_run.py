"""`troupe run`: several of them on loopback, each told by its environment which node it is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

LEAD_WAIT_S = "120"


class Run:
    """The processes of one run: `troupe run` with the same line, in environments of their own."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self.secret = str(folder / "secret")
        home.run("run", "--make-secret", self.secret)
        self._started: list[subprocess.Popen] = []

    def node(
        self,
        rank: int,
        *command: str,
        nodes: int = 2,
        options: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        program: tuple[str, ...] = ("-m", "troupe"),
    ) -> subprocess.Popen:
        """Starts the line on node `rank`, as a LeaderWorkerSet would."""
        said = {
            "LWS_WORKER_INDEX": str(rank),
            "LWS_GROUP_SIZE": str(nodes),
            "LWS_LEADER_ADDRESS": "127.0.0.1",
        }
        return self.start(
            said if env is None else env,
            ("--nodes", str(nodes), *options),
            command,
            f"n{rank}",
            program,
        )

    def start(
        self,
        env: dict[str, str],
        options: tuple[str, ...],
        command: tuple[str, ...],
        name: str,
        program: tuple[str, ...] = ("-m", "troupe"),
    ) -> subprocess.Popen:
        """Starts one `troupe run`; its stdout and stderr go to files."""
        number = len(self._started)
        with (
            open(self._folder / f"{number}.out", "wb") as out,
            open(self._folder / f"{number}.err", "wb") as err,
        ):
            process = subprocess.Popen(
                [
                    sys.executable,
                    *program,
                    "run",
                    "--secret-file",
                    self.secret,
                    "--wait",
                    LEAD_WAIT_S,
                    "--num-cpus",
                    "2",
                    "--node-name",
                    name,
                    *options,
                    "--",
                    *(command or (sys.executable, "-c", "pass")),
                ],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **env},
            )
        self._started.append(process)
        return process

    def text(self, process: subprocess.Popen, which: str = "err") -> str:
        """Return the output of a process so far."""
        return (self._folder / f"{self._started.index(process)}.{which}").read_text()

    def says(self, process: subprocess.Popen, text: str) -> None:
        """Waits until its stderr has `text`."""
        eventually(
            lambda: text in self.text(process) or process.poll() is not None, what=f"{text!r}"
        )
        assert text in self.text(process), self.text(process)

    def codes(self, *processes: subprocess.Popen) -> list[int]:
        """The exit codes, once all have ended."""
        return [process.wait(TIMEOUT_S) for process in processes]

    def close(self) -> None:
        """Nothing of a run may outlive its processes."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
        eventually(lambda: not self._home.processes(), what=f"the end of {self._home.processes()}")
        left = [
            path
            for path in Path("/tmp").glob("troupe-run-*")
            if path.stat().st_uid == os.getuid()
            and (path / "head.log").exists()
            and str(self._folder) in (path / "head.log").read_text()
        ]
        assert not left


@pytest.fixture
def run(home: Home, tmp_path: Path) -> Iterator[Run]:
    """A run of this test, its secret made."""
    made = Run(home, tmp_path)
    yield made
    made.close()


PROGRAM = """
import os, sys, troupe
from troupe.launch import distributed
def where():
    import troupe
    return os.environ["NODE_RANK"], os.environ["RANK"]
with troupe.init() as cluster:
    print("nodes", sorted(node["NodeName"] for node in troupe.nodes()), os.environ["TROUPE_RUN_NODES"])
    print(sorted(distributed(processes=6, remote=True)(where).submit().result(60)))
sys.exit(int(sys.argv[1]))
"""


def test_the_same_line_on_every_node(run: Run) -> None:
    command = (sys.executable, "-c", PROGRAM, "0")
    followers = [run.node(rank, *command, nodes=3) for rank in (1, 2)]  # before there is a head
    leader = run.node(0, *command, nodes=3)
    assert run.codes(leader, *followers) == [0, 0, 0], run.text(leader)
    out = run.text(leader, "out").splitlines()
    assert out[0] == "nodes ['n0', 'n1', 'n2'] 3"
    assert out[1] == str([(str(rank // 2), str(rank)) for rank in range(6)])
    assert "n0 leads at 127.0.0.1:" in run.text(leader) and "3 of 3 nodes in" in run.text(leader)
    assert "confirmed" not in run.text(leader)  # the others' leaving was seen
    for process in (leader, *followers):
        assert "marker: succeeded, exit 0, epoch 1" in run.text(process)
    assert "joined 127.0.0.1:" in run.text(followers[0]) and run.text(followers[0], "out") == ""


@pytest.mark.parametrize(
    "code, expected, cause",
    [
        ("import sys; sys.exit(3)", 3, "exited with 3"),
        ("import os; os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL"),
    ],
)
def test_every_node_ends_with_the_commands_code(
    run: Run, code: str, expected: int, cause: str
) -> None:
    command = (sys.executable, "-c", code)
    nodes = [run.node(rank, *command) for rank in (0, 1)]
    assert run.codes(*nodes) == [expected] * 2
    for each in nodes:
        assert f"marker: failed, exit {expected}" in run.text(each) and cause in run.text(each)


def test_a_command_that_cannot_be_run(run: Run) -> None:
    nodes = [run.node(rank, "/no/such/program") for rank in (0, 1)]
    assert run.codes(*nodes) == [127] * 2
    assert "/no/such/program cannot be run: there is no such program" in run.text(nodes[0])


@pytest.mark.parametrize("address", ["", "'auto'"])
def test_one_node_needs_neither_secret_nor_address(run: Run, home: Home, address: str) -> None:
    code = (
        f"import os, troupe; troupe.init({address}); print(len(troupe.nodes()), "
        "os.environ['TROUPE_ADDRESS'][:6])"
    )
    done = home.run("run", "--nodes", "1", "--num-cpus", "1", "--", sys.executable, "-c", code)
    assert done.stdout == "1 unix:/\n"
    assert home.run("run", "--nodes", "1", "--", "sh", "-c", "exit 7", ok=False).returncode == 7


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_nodes_without_ranks_and_one_too_many(run: Run, tmp_path: Path) -> None:
    """The node that has the address leads; of several on one host, the first."""
    os.mkfifo(tmp_path / "go")
    command = ("sh", "-c", f"read line < {tmp_path / 'go'}; exit 5")
    line = ("--nodes", "3", "--address", free_address())
    nodes = [run.start({}, line, command, f"n{number}") for number in range(3)]
    eventually(lambda: any("running sh" in run.text(each) for each in nodes), what="the command")
    extra = run.start({}, line, command, "extra")
    assert run.codes(extra) == [2]
    text = run.text(extra)
    assert "all 3 nodes of the run" in text and "one too many" in text and "node 2 is n" in text
    (tmp_path / "go").write_text("now\n")
    assert run.codes(*nodes) == [5] * 3
    assert sum("leads at" in run.text(each) for each in nodes) == 1


def test_two_nodes_with_one_rank(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    command = ("sh", "-c", f"read line < {tmp_path / 'go'}")
    leader, first = run.node(0, *command), run.node(1, *command)
    run.says(leader, "running sh")
    second = run.node(1, *command)
    assert run.codes(second) == [2]
    assert "two nodes say they are node 1 (LeaderWorkerSet)" in run.text(second)
    assert f"node 1 is n1 (host {socket.gethostname()}, pid {first.pid})" in run.text(second)
    (tmp_path / "go").write_text("now\n")
    assert run.codes(leader, first) == [0, 0]


def test_two_nodes_that_lead(run: Run) -> None:
    nodes = [run.node(0), run.node(0)]
    eventually(
        lambda: any(each.poll() is not None for each in nodes), what="the end of one of them"
    )
    loser, winner = sorted(nodes, key=lambda each: each.poll() is None)
    assert run.codes(loser) == [1] and "node 0 cannot lead: port" in run.text(loser)
    assert run.codes(run.node(1), winner) == [0, 0]


def test_a_node_0_of_another_address_is_told_so(run: Run) -> None:
    elsewhere = {
        "LWS_WORKER_INDEX": "0",
        "LWS_GROUP_SIZE": "2",
        "LWS_LEADER_ADDRESS": "192.0.2.1",
    }
    node = run.node(0, env=elsewhere)
    assert run.codes(node) == [1]
    assert "this is node 0" in run.text(node) and "is no address of this host" in run.text(node)


def test_nodes_that_never_come_are_named(run: Run) -> None:
    slurm = {
        "SLURM_STEP_NODELIST": "gpu[06-08]",
        "SLURM_NNODES": "3",
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "0",
        "SLURM_NODEID": "0",
    }
    leader = run.node(0, nodes=3, options=("--address", "127.0.0.1", "--wait", "1.5"), env=slurm)
    assert run.codes(leader) == [1]
    text = run.text(leader)
    assert "2 of 3 nodes did not come within 1.5 s, counted from the start of the head" in text
    assert "node 1 (gpu07): never came" in text and "node 2 (gpu08): never came" in text
    assert run.text(leader, "out") == ""  # the command did not run


def test_nobody_leads(run: Run) -> None:
    follower = run.node(1, options=("--wait", "1"))
    assert run.codes(follower) == [75]
    text = run.text(follower)
    assert (
        "nobody leads at 127.0.0.1:" in text
        and "no answer within 1 s" in text
        and "LeaderWorkerSet" in text
    )


def test_a_leader_that_is_killed(run: Run, home: Home, tmp_path: Path) -> None:
    leader = run.node(0, "sh", "-c", f"echo $$ > {tmp_path / 'pid'}; sleep 1000")
    follower = run.node(1, "true", options=("--lost-after", "1"))
    eventually(
        lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(),
        what="the command",
    )
    leader.kill()
    assert run.codes(leader, follower) == [-9, 75]
    assert "lost the head" in run.text(follower) and "how the run ended is unknown" in run.text(
        follower
    )
    eventually(lambda: not home.processes(), what="the end of the command, head and workers")


def test_a_head_that_is_killed(run: Run, home: Home, tmp_path: Path) -> None:
    leader = run.node(0, "sh", "-c", f"echo $$ > {tmp_path / 'pid'}; sleep 1000")
    follower = run.node(1, "true", options=("--lost-after", "1"))
    eventually(
        lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(),
        what="the command",
    )
    head = [pid for pid, command in home.processes().items() if "troupe-head" in command]
    os.kill(head[0], signal.SIGKILL)
    assert run.codes(leader, follower) == [75, 75]
    assert "the head ended" in run.text(leader)


NOTES_LATE = """
import runpy
from troupe._run import node
note = node.note_joined
def late(*given):
    open({up!r}, "w").close()
    open({go!r}).close()  # a pipe: until the test has killed the head
    note(*given)
node.note_joined = late
runpy.run_module("troupe", run_name="__main__", alter_sys=False)
"""


def test_a_head_that_is_killed_while_a_node_joins(run: Run, home: Home, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    leader = run.node(0, "sleep", "1000")
    run.says(leader, "waiting for 1 more node")
    late = NOTES_LATE.format(up=str(tmp_path / "up"), go=str(tmp_path / "go"))
    follower = run.node(1, "sleep", "1000", options=("--lost-after", "1"), program=("-c", late))
    eventually((tmp_path / "up").exists, what="the follower's worker")
    head = [pid for pid, command in home.processes().items() if "troupe-head" in command]
    os.kill(head[0], signal.SIGKILL)
    (tmp_path / "go").write_text("")
    assert run.codes(leader, follower) == [75, 75], run.text(follower)
    assert "how the run ended is unknown" in run.text(follower)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_leader_cancels_the_run(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    code = f"import signal, sys; open({str(tmp_path / 'up')!r}, 'w').close(); signal.pause()"
    leader, follower = (run.node(rank, sys.executable, "-c", code) for rank in (0, 1))
    eventually((tmp_path / "up").exists, what="the command")
    leader.send_signal(number)
    assert run.codes(leader, follower) == [130, 130]
    for each in (leader, follower):
        assert "marker: cancelled, exit 130, epoch 1" in run.text(
            each
        ) and f"{number.name} on n0" in run.text(each)


def test_a_signal_while_nodes_are_awaited(run: Run) -> None:
    leader = run.node(0)
    run.says(leader, "waiting for 1 more node")
    leader.send_signal(signal.SIGTERM)
    assert run.codes(leader) == [130]


def test_a_node_that_is_told_to_leave(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    leader, follower = (
        run.node(rank, "sh", "-c", f"read line < {tmp_path / 'go'}; exit 4") for rank in (0, 1)
    )
    run.says(leader, "running sh")
    follower.send_signal(signal.SIGTERM)
    assert run.codes(follower) == [130] and "the run goes on without it" in run.text(follower)
    (tmp_path / "go").write_text("now\n")
    assert run.codes(leader) == [4]


def test_another_secret_is_another_cluster(run: Run, home: Home, tmp_path: Path) -> None:
    address = ("--address", free_address())
    leader = run.node(0, options=address)
    run.says(leader, "waiting for 1 more node")
    mine, run.secret = run.secret, str(tmp_path / "other")
    home.run("run", "--make-secret", run.secret)
    stranger = run.node(1, options=address)
    assert run.codes(stranger) == [78] and "is not the head of this run" in run.text(stranger)
    run.secret = mine
    follower = run.node(1, options=address)
    assert run.codes(leader, follower) == [0, 0]


def test_what_the_command_leaves_behind_is_ended(run: Run, home: Home) -> None:
    nodes = [
        run.node(rank, "sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & exit 0")
        for rank in (0, 1)
    ]
    assert run.codes(*nodes) == [0, 0]
    eventually(lambda: not home.processes(), what="the end of what the command started")


def test_no_secret_in_sight(run: Run, home: Home, tmp_path: Path) -> None:
    """Neither argv nor the environment of any process of the run has the secret or a token of
    it."""
    from troupe._base.bridge import native

    os.mkfifo(tmp_path / "go")
    leader, follower = (
        run.node(rank, "sh", "-c", f"read line < {tmp_path / 'go'}") for rank in (0, 1)
    )
    run.says(leader, "running sh")
    secret = Path(run.secret).read_bytes()
    derived = native.derive_run(secret, "lws 127.0.0.1")
    secrets = [
        secret,
        secret.hex().encode(),
        derived["worker_token"].encode(),
        derived["client_token"].encode(),
    ]
    for pid in home.processes():
        for name in ("cmdline", "environ"):
            data = Path(f"/proc/{pid}/{name}").read_bytes()
            assert not [each for each in secrets if each in data]
    (tmp_path / "go").write_text("now\n")
    assert run.codes(leader, follower) == [0, 0]


def test_secret_files(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    line = (
        "run",
        "--nodes",
        "2",
        "--address",
        "127.0.0.1:1",
        "--secret-file",
        str(path),
        "--",
        "true",
    )
    assert "does not exist" in home.run(*line, ok=False).stderr
    alone = home.run("run", "--nodes", "1", "--secret-file", str(path), "--", "true", ok=False)
    assert alone.returncode == 2 and "does not exist" in alone.stderr
    home.run("run", "--make-secret", str(path))
    assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_bytes()) == 32
    again = home.run("run", "--make-secret", str(path), ok=False)
    assert again.returncode == 2 and "not overwritten" in again.stderr
    path.chmod(0o644)
    assert f"chmod 600 {path}" in home.run(*line, ok=False).stderr
    path.chmod(0o600)
    path.write_bytes(b"short")
    refused = home.run(*line, ok=False)
    assert refused.returncode == 2 and "has 5 bytes" in refused.stderr
    assert not home.processes()
