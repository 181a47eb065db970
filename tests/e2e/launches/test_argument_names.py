"""All that a launch's call is given is the function's, whatever a parameter is called; options come
by `options(...)` alone.

Method: functions whose parameters are called as the launch's own options and names, launched on a
cluster; what the ranks saw, and whether the launch is a detached one, is looked at.
"""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe.launch import distributed, ray_launch

NAMES = (
    "detach",
    "timeout",
    "self",
    "args",
    "kwargs",
    "name",
    "options",
    "function",
    "fn",
    "remote",
    "mode",
    "quiet",
    "handle",
)


def the_launch(name: str) -> dict[str, Any]:
    """Return the head's information on the launch of this name."""
    return next(each for each in troupe.state.list_launches() if each["name"] == name)


@pytest.mark.parametrize("decorator", [distributed, ray_launch])
def test_every_name_is_a_parameter(idle: Home, decorator: Any) -> None:
    def take(
        *,
        detach=0,
        timeout=0,
        self=0,
        args=0,
        kwargs=0,
        name=0,
        options=0,
        function=0,
        fn=0,
        remote=0,  # type: ignore[no-untyped-def]
        mode=0,
        quiet=0,
        handle=0,
    ):
        return [
            detach,
            timeout,
            self,
            args,
            kwargs,
            name,
            options,
            function,
            fn,
            remote,
            mode,
            quiet,
            handle,
        ]

    launched = decorator(processes=1, remote=True)(take)
    given = {each: number for number, each in enumerate(NAMES, 1)}
    expected = list(given.values())
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert launched(**given) == expected
        assert launched.distributed(**given) == [expected]
        assert launched.submit(**given).result(60) == [expected]


def test_a_parameter_called_detach_detaches_nothing(idle: Home, tmp_path: Path) -> None:
    address = troupe.init(ignore_reinit_error=True).address
    code = f"""
import os, threading, troupe
from troupe.launch import distributed
troupe.init({address!r})
def wait(lr, detach=0.0):
    threading.Event().wait()
handle = distributed(processes=1, remote=True, name="not-detached")(wait).submit(0.1, detach=0.5)
handle.wait_state(lambda info: info["state"] == "running", 30)
os._exit(0)
"""
    done = idle.python(code)
    assert done.returncode == 0, done.stderr
    eventually(
        lambda: the_launch("not-detached")["outcome"] == "cancelled", what="the end with its caller"
    )


def test_options_change_what_they_name_and_nothing_else(idle: Home) -> None:
    @distributed(
        processes=1, remote=True, name="first", priority=3, runtime_env={"env_vars": {"MINE": "1"}}
    )
    def look() -> tuple[str, str]:
        return os.environ["WORLD_SIZE"], os.environ["MINE"]

    second = look.options(processes=2, name="second")
    assert second.distributed() == [("2", "1")] * 2 and look.distributed() == [("1", "1")]
    assert [
        (the_launch(name)["priority"], the_launch(name)["ranks"]) for name in ("first", "second")
    ] == [(3, 1), (3, 2)]
    with pytest.raises(
        TypeError,
        match=r"options\(\) has no num_gpus=: gpus=N is the number of ranks",
    ):
        look.options(num_gpus=1)
    with pytest.raises(ValueError, match="timeout must be more than 0"):
        look.options(timeout=-1)
    with pytest.raises(TypeError, match="gpu_type= goes with gpus="):
        look.options(gpu_type="H100")
    with pytest.raises(TypeError, match="detach must be True or False, not 'yes'"):
        look.options(detach="yes")
    assert look.options(gpus=2, gpu_type="H100").options(processes=1).distributed() == [("1", "1")]


def test_an_option_as_an_argument_is_told_where_it_goes(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def train(epochs: int) -> int:
        return epochs

    with pytest.raises(
        TypeError,
        match=r"'timeout'\n  timeout= as an option of the launch: train.options\(timeout=...\)",
    ):
        train.distributed(epochs=1, timeout=5)


def test_submit_detach_means_the_option_for_a_function_that_cannot_take_it(idle: Home) -> None:
    def plain(x: int) -> int:
        return x

    @functools.wraps(plain)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs)

    @functools.wraps(plain)
    def own(x: int, detach: float = 0.0) -> float:
        return plain(x) + detach

    for function in (plain, wrapper):
        with pytest.warns(
            DeprecationWarning, match=r"say plain.options\(detach=...\).submit"
        ) as seen:
            assert distributed(processes=1, remote=True)(function).submit(3, detach=True).result(
                60
            ) == [3]
        assert seen[0].filename == __file__
    assert distributed(processes=1, remote=True)(own).submit(3, detach=0.5).result(60) == [3.5]
    assert distributed(processes=1, remote=True)(lambda **all: all).submit(detach=1).result(60) == [
        {"detach": 1}
    ]


def test_a_run_of_a_driver_takes_every_name_and_refuses_what_is_unclear(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> list[Any]:
        from troupe.launch import current

        def part(self: int, fn: int) -> int:
            return self + fn

        def limited(timeout: float = 1.0) -> float:
            return timeout

        try:
            current().run(limited, timeout=60)
        except TypeError as error:
            return [
                current().run(part, self=1, fn=2),
                current().ranks[1].run(part, self=3, fn=4),
                current().run(limited, 2.0),
                str(error),
            ]
        return ["not refused"]

    first, second, third, text = drive.distributed()[0]
    assert (first, second, third) == (
        [3, 3],
        7,
        [2.0, 2.0],
    ) and "is the limit of the run, and limited(timeout" in text
