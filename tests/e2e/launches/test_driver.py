"""`@ray_launch`: rank 0 as the driver of its launch, the other ranks serving it until the
marker."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest
from conftest import Home

from troupe import exceptions
from troupe.launch import ray_launch


def test_the_driver_returns_and_the_marker_is_printed(
    idle: Home, capsys: pytest.CaptureFixture
) -> None:
    @ray_launch(processes=3, remote=True)
    def drive(value: int) -> int:
        import troupe.launch

        context = troupe.launch.current()
        assert context.rank == 0 and context.world_size == 3 and len(context.ranks) == 3
        return value + 1

    assert drive.distributed(41) == [42, None, None]
    assert "marker: succeeded, exit 0, epoch 1" in capsys.readouterr().err


def test_resources_of_exactly_the_launch(idle: Home) -> None:
    @ray_launch(processes=3, remote=True)
    def drive() -> dict:
        import troupe

        class Looks:
            def look(self) -> tuple:
                return troupe.available_resources(), troupe.cluster_resources()

        before = troupe.state.available_resources_per_node()
        inside = troupe.get(troupe.remote(num_cpus=1)(Looks).remote().look.remote(), timeout=30)
        return before, troupe.launch.current().nodes, inside

    free, nodes, (available, total) = drive.distributed()[0]
    assert list(free) == nodes and free[nodes[0]] == {"CPU": 3.0}
    assert available == {"CPU": 2.0, "node:127.0.0.1": 1.0} and total == {
        "CPU": 3.0,
        "node:127.0.0.1": 1.0,
    }


def test_a_function_on_every_rank(idle: Home) -> None:
    pytest.importorskip("torch")

    @ray_launch(processes=3, remote=True)
    def drive() -> list:
        from troupe.launch import current

        def part(factor: int) -> float:
            import torch
            import torch.distributed as dist

            value = torch.tensor([float(dist.get_rank() * factor)])
            dist.all_reduce(value)
            return value.item() + dist.get_rank()

        return current().run(part, 10), current().run(part, factor=1)

    assert drive.distributed()[0] == ([30.0, 31.0, 32.0], [3.0, 4.0, 5.0])


def test_an_exception_of_another_rank_is_raised_in_the_driver(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> str:
        from troupe.launch import current

        try:
            current().ranks[1].run(lambda: {}["missing"])
        except KeyError as error:
            return f"{type(error).__mro__[-4].__name__} {error.args[0]}"
        return "nothing"

    assert drive.distributed()[0].endswith("missing")


def test_actors_and_a_group_inside_the_launch(idle: Home) -> None:
    @ray_launch(processes=4, remote=True)
    def drive() -> list:
        import troupe as ray
        from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        class Adder:
            def add(self, a: int, b: int) -> int:
                return a + b

        group = ray.util.placement_group([{"CPU": 1}] * 4, strategy="PACK")
        ray.get(group.ready(), timeout=20)
        made = ray.remote(num_cpus=1)(Adder)
        actors = [
            made.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, i)).remote()
            for i in range(4)
        ]
        sums = ray.get([actor.add.remote(i, 1) for i, actor in enumerate(actors)], timeout=30)
        with_error = ray.remote(Adder)
        try:
            with_error.options(name="x", lifetime="detached").remote()
        except ValueError as error:
            sums.append(str(error).split(":")[0])
        return sums

    assert drive.distributed()[0] == [1, 2, 3, 4, "lifetime='detached' inside a launch"]


def test_the_driver_raises(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> None:
        raise LookupError("no such trial")

    with pytest.raises(LookupError) as caught:
        drive.distributed()
    assert isinstance(caught.value, exceptions.LaunchError) and caught.value.exit_code == 1


def test_the_driver_is_killed(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(exceptions.LaunchError) as caught:
        drive.distributed()
    assert "SIGKILL" in str(caught.value)


def test_a_waiting_rank_is_killed(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> None:
        import threading

        from troupe.launch import current

        try:
            current().ranks[1].run(lambda: os.kill(os.getpid(), signal.SIGKILL))
        except exceptions.TroupeError:
            threading.Event().wait()

    with pytest.raises(exceptions.LaunchError) as caught:
        drive.distributed()
    assert caught.value.rank == 1 and caught.value.signal == signal.SIGKILL


def test_the_driver_exits(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive(code: int) -> None:
        import sys

        sys.exit(code)

    assert drive.distributed(0) == [None, None]
    with pytest.raises(exceptions.LaunchError) as caught:
        drive.distributed(5)
    assert caught.value.exit_code == 5


class Holder:
    """An actor that holds what it was given."""

    def ping(self) -> int:
        """Answers."""
        return 1


def test_a_run_holds_each_ranks_share(idle: Home) -> None:
    """Decision 3: what runs on the ranks and what the driver places never share a CPU."""

    @ray_launch(processes=3, remote=True)
    def drive() -> dict:
        import threading

        import troupe as ray
        from troupe.launch import current

        def free() -> float:
            return ray.available_resources().get("CPU", 0) if current().rank == 0 else -1

        def until_told(begun: int, told: int) -> None:
            if current().rank == 0:  # in the driver's process: the descriptors are its own
                os.write(begun, b"x")
                os.read(told, 1)

        seen = {"before": free(), "inside": current().run(free)[0], "after": free()}
        (began, begun), (told, tell) = os.pipe(), os.pipe()
        runner = threading.Thread(target=current().run, args=(until_told, begun, told))
        runner.start()
        os.read(began, 1)
        actor = ray.remote(num_cpus=1)(Holder).remote()
        answer = actor.ping.remote()
        seen["beside"] = ray.wait([answer], timeout=0.3)[0]
        seen["waits for"] = [
            each["waiting_for"] for each in ray.state.list_actors() if each["waiting_for"]
        ]
        os.write(tell, b"x")
        runner.join()
        seen["then"] = ray.get(answer, timeout=30)
        try:
            current().run(free, timeout=0.3)
        except ray.exceptions.GetTimeoutError as error:
            seen["timeout"] = str(error)
        ray.kill(actor)
        seen["again"] = len(current().run(free, timeout=30))
        seen["one"] = current().ranks[2].run(lambda: current().rank, timeout=30)
        return seen

    seen = drive.distributed()[0]
    assert seen["before"] == 3 and seen["after"] == 3 and seen["inside"] == 0
    assert (
        seen["beside"] == []
        and "held by current().run on all ranks {CPU: 3}" in seen["waits for"][0]
    )
    assert seen["then"] == 1 and seen["again"] == 3 and seen["one"] == 2
    assert "waited 0.3 s" in seen["timeout"] and "held by actor Holder" in seen["timeout"]


def test_a_share_is_kept_while_a_part_outlasts_its_timeout(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive(path: str) -> list:
        import troupe as ray
        from troupe.launch import current

        def part(fifo: str) -> None:
            with open(fifo):
                pass

        try:
            current().ranks[1].run(part, path, timeout=0.5)
        except ray.exceptions.GetTimeoutError as error:
            text = str(error)
        still = ray.available_resources().get("CPU", 0)
        with open(path, "w"):
            pass
        current().run(lambda: None, timeout=30)  # waits for the share that the part gives back
        return [text, still]

    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(f"{folder}/fifo")
        text, still = drive.distributed(f"{folder}/fifo")[0]
    assert "rank 1 did not finish its part within 0.5 s" in text and still == 1


def test_a_run_inside_a_run_is_refused(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> list:
        from troupe.launch import current

        def inner() -> str:
            if current().rank != 0:
                return ""
            try:
                current().ranks[1].run(len, [])
            except RuntimeError as error:
                return str(error)
            return "not refused"

        return current().run(inner)

    assert "inside a function that a run" in drive.distributed()[0][0]
