"""Decisions about a real Ray cluster before it starts, and the errors where it cannot.

Method: the pure functions; launches on nodes without Ray.
"""

from __future__ import annotations

import os

import pytest
from e2e_conftest import TIMEOUT_S, Home
from real_rays import without_ray

from troupe import exceptions
from troupe._ray_cluster import words
from troupe.launch import ray_launch

SHARE = words.Share("n", "a", "10.0.0.1", 2.5, 1.0, 1 << 30)


def test_a13_an_api_that_is_none_is_refused() -> None:
    for api in ("Ray", "real", True, ""):
        with pytest.raises(
            ValueError,
            match=r"api must be 'troupe' \(`import ray` is Troupe\), 'ray' \(a real Ray cluster",
        ):
            ray_launch(processes=1, api=api)(os.getpid)
    assert "api='ray'" not in repr(ray_launch(processes=1, api="ray")(os.getpid))


def test_a13_what_ray_start_is_told() -> None:
    head = words.start_words(SHARE, "/tmp/x/r", words.Wishes())
    assert (
        head[:3] == ["start", "--head", "--port=0"]
        and "--include-dashboard=false" in head
        and "--disable-usage-stats" in head
    )
    assert {
        "--node-ip-address=10.0.0.1",
        "--node-name=a",
        "--temp-dir=/tmp/x/r",
        "--num-cpus=2",
        "--num-gpus=1",
        f"--memory={1 << 30}",
    } <= set(head)
    assert not [word for word in head if "token" in word], "a secret is in no argument"
    other = words.start_words(
        SHARE, "/tmp/x/r", words.Wishes(others=("--resources={}",)), address="10.0.0.1:1"
    )
    assert (
        other[:2] == ["start", "--address=10.0.0.1:1"]
        and other[-1] == "--resources={}"
        and "--port=0" not in other
    )
    asked = words.start_words(
        SHARE, "f", words.Wishes(6379, True, 8265, ("--labels=a=b",)), client=True
    )
    assert {
        "--port=6379",
        "--include-dashboard=true",
        "--dashboard-port=8265",
        "--ray-client-server-port=0",
    } <= set(asked)
    assert asked[-1] == "--labels=a=b"


@pytest.mark.parametrize("word", ["--block", "--address=1.2.3.4:5", "--temp-dir", "--head"])
def test_c7_what_the_launch_says_itself_is_refused_of_a_person(word: str) -> None:
    with pytest.raises(
        ValueError,
        match=f"head_node_additional_args has {word.partition('=')[0]}, which the launch says "
        "itself",
    ):
        words.check_extra("head_node_additional_args", ["--labels=a=b", word])


def test_a13_whose_end_is_the_clusters() -> None:
    assert words.ends_the_cluster("gcs_server", 0) and words.ends_the_cluster("raylet", -15)
    assert (
        not words.ends_the_cluster("dashboard", 0)
        and not words.ends_the_cluster("monitor", -15)
        and words.ends_the_cluster("monitor", 1)
    )
    assert words.missing(["raylet", "log_monitor"], api="ray", head=True) == [
        "gcs_server"
    ] and not words.missing(["raylet"], api="ray", head=False)
    assert words.missing(["troupe-head"], api="troupe", head=True) == ["troupe-worker"]
    assert words.differing({"a": "2.60.0", "b": "2.61.0"}).endswith(
        "a has 2.60.0, b has 2.61.0"
    ) and not words.differing({"a": "2", "b": "2"})


@without_ray
def test_a13_a_node_without_ray_says_so(idle: Home) -> None:
    with pytest.raises(
        exceptions.RuntimeEnvSetupError,
        match="starts a real Ray cluster, and Ray is not installed on",
    ):
        ray_launch(processes=1, remote=True, api="ray")(os.getpid).submit().result(
            timeout=TIMEOUT_S
        )
