# Method: the file and the rule in this process; then commands and programs in processes of their
#     own against a head and a worker, which they reach by a name and a token's file.
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import Home
from hypothesis import given, strategies

from troupe import exceptions
from troupe._cluster import known_clusters
from troupe._cluster.known_clusters import Choice, Entry, KnownClusters, Source

TEXTS = strategies.text(max_size=40)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of known clusters, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TROUPE_HOME", str(tmp_path / "home"))
    for name in ("TROUPE_ADDRESS", "TROUPE_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    return known_clusters.path()


def _write(*names: str, in_use: str = "") -> None:
    with known_clusters.changed():
        entries = {name: Entry(f"10.0.0.{at}:6400", f"/t/{name}") for at, name in enumerate(names)}
        known_clusters.write(KnownClusters(entries, in_use))


@given(file=TEXTS, in_use=strategies.booleans())
def test_what_is_written_is_read_again_whatever_a_path_has_in_it(file: str, in_use: bool) -> None:
    known = KnownClusters({"a.b-c": Entry("[::1]:6400", file)}, "a.b-c" if in_use else "")
    try:
        data = known_clusters.text_of(known).encode()
    except UnicodeEncodeError:
        return  # a surrogate: no text of TOML has one
    assert known_clusters.parse(data) == known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('use = "lab"', "uses 'lab', which it does not describe"),
        ("use = ", "no TOML"),
        ("[clusters.lab]\naddress = 5", "texts for address and token_file"),
        ('[clusters.lab]\naddress = "lab"', "no address"),
        ('[clusters.lab]\naddress = "h:1"\ntoken = "secret"', "nothing else"),
        ('[clusters.auto]\naddress = "h:1"', "neither 'auto' nor 'local'"),
        ("clusters = 1", "a table"),
        ("cluster = {}", "it has 'cluster'"),
        ("\udcff", "no UTF-8"),
    ],
    ids=range(9),
)
def test_a_file_that_is_not_what_is_written_is_refused_with_its_path(
    text: str, said: str, config: Path
) -> None:
    with pytest.raises(exceptions.DamagedFileError) as refused:
        known_clusters.parse(text.encode(errors="surrogateescape"))
    assert said in str(refused.value) and str(config) in str(refused.value)


def test_the_first_that_says_which_cluster_is_meant_decides(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = known_clusters.choose
    assert choose() is None and choose(other_launcher=lambda: "r:1").address == "r:1"
    _write("lab", "desk", in_use="desk")
    assert choose() == Choice("10.0.0.1:6400", Source.IN_USE, "/t/desk", "desk")
    assert choose(other_launcher=lambda: "r:1").source is Source.OTHER_LAUNCHER
    monkeypatch.setenv("TROUPE_CLUSTER", "lab")
    assert choose(other_launcher=lambda: "r:1").source is Source.NAME_VARIABLE
    monkeypatch.setenv("TROUPE_ADDRESS", "a:1")
    assert choose() == Choice("a:1", Source.ADDRESS_VARIABLE)
    assert choose(cluster="desk").source is Source.GIVEN_NAME
    assert choose("b:1") == Choice("b:1", Source.GIVEN_ADDRESS)
    with pytest.raises(ValueError, match="give one or the other"):
        choose("b:1", "lab")
    with pytest.raises(exceptions.ConnectionError, match="do you mean 'desk'"):
        choose(cluster="desks")
    for_init = known_clusters.choose_for_init
    assert for_init("auto", None, lambda given: "").source is Source.ADDRESS_VARIABLE
    assert for_init("local", None, lambda given: "").address == "local"
    with pytest.raises(ValueError, match="give one or the other"):
        for_init("auto", "lab", lambda given: "")


def test_the_file_is_this_users_alone(config: Path) -> None:
    _write("lab")
    assert config.stat().st_mode & 0o777 == 0o600
    config.chmod(0o620)
    with pytest.raises(PermissionError, match="chmod 600"):
        known_clusters.read()


def test_names_that_are_added_at_once_are_all_there(config: Path) -> None:
    code = (
        "import sys; from troupe._cluster import known_clusters as k\n"
        "with k.changed() as known:\n"
        "    known.entries[sys.argv[1]] = k.Entry('h:1')\n"
        "    k.write(known)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, f"n{each}"]) for each in range(4)]
    assert [each.wait() for each in running] == [0] * 4
    assert sorted(known_clusters.read().entries) == ["n0", "n1", "n2", "n3"]


def test_a_name_stands_for_a_cluster_in_commands_and_programs(
    cluster: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TROUPE_ADDRESS", raising=False)
    there, token = cluster.json("status"), cluster.token("--role", "client")
    elsewhere = {"TROUPE_HOME": str(tmp_path / "other")}  # a home without a running cluster
    added = cluster.json(
        "cluster", "add", "lab", "--address", there["address"], "--token-file", token
    )
    assert (added["name"], added["token_file"], added["in_use"]) == ("lab", token, False)
    refused = cluster.run("cluster", "add", "lab", "--address", "h:1", ok=False)
    assert refused.returncode == 2 and "--replace" in refused.stderr
    assert cluster.run("cluster", "add", "a", "--token-file", "/no", ok=False).returncode == 2

    missing = cluster.run("status", "--cluster", "lap", ok=False, env=elsewhere)
    assert missing.returncode == 1 and "do you mean 'lab'?" in missing.stderr
    by_id = cluster.run("status", "--json", "--cluster", there["cluster_id"][:12])
    by_name = cluster.run("status", "--json", "--cluster", "lab", env=elsewhere)
    for each in (by_id, by_name):
        assert there["cluster_id"] in each.stdout
    for line, variables in (
        ("troupe.init(cluster='lab')", {}),
        ("troupe.init('auto')", {"TROUPE_CLUSTER": "lab"}),
    ):
        seen = cluster.python(
            f"import troupe\nwith {line} as c: print(c['cluster_id'])",
            env={**elsewhere, **variables},
        )
        assert seen.stdout.strip() == there["cluster_id"], seen.stderr

    assert "lab" in cluster.run("cluster", "use", "lub", ok=False).stderr
    cluster.run("cluster", "use", "lab")
    assert [each["in_use"] for each in cluster.json("cluster", "list")] == [True]
    used = cluster.python(
        "import troupe\nwith troupe.init() as c: print(c['cluster_id'])", env=elsewhere
    )
    assert used.stdout.strip() == there["cluster_id"], used.stderr
    job = cluster.run("job", "submit", "--", "true", env=elsewhere).stdout.strip()
    assert cluster.run("job", "wait", job, env=elsewhere, ok=False).returncode == 0
    os.unlink(token)
    gone = cluster.run("status", env=elsewhere, ok=False)
    assert gone.returncode == 1 and "'lab', which is in use" in gone.stderr, gone.stderr
    cluster.run("cluster", "remove", "lab")
    assert not cluster.run("cluster", "list", "--json", env=elsewhere).stdout.strip("[]\n")
