"""`@ray_launch`: rank 0 as the driver of its launch, the other ranks serving it until the marker."""
from __future__ import annotations

import os
import signal

import pytest
from conftest import Home

from troupe import exceptions
from troupe.launch import ray_launch


def test_the_driver_returns_and_the_marker_is_printed(idle: Home, capsys: pytest.CaptureFixture) -> None:
    @ray_launch(processes=3, remote=True)
    def drive(value: int) -> int:
        import troupe.launch

        context = troupe.launch.current()
        assert context.rank == 0 and context.world_size == 3 and len(context.ranks) == 3
        return value + 1

    assert drive.distributed(41) == [42, None, None]
    assert "marker: succeeded, exit 0, epoch 1" in capsys.readouterr().out


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
    assert available == {"CPU": 2.0} and total == {"CPU": 3.0}


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
        actors = [made.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, i)).remote()
                  for i in range(4)]
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
