"""Files of hosts: what is read from them, and all errors at once with their places."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from troupe._provision import hostfile, hosts_file, ssh_lines
from troupe._provision.hosts import Host


@pytest.fixture
def read(tmp_path: Path):
    """Write a file and read it."""

    def read(text: str, name: str = "hosts.yml") -> hosts_file.HostsFile:
        (tmp_path / name).write_text(text)
        return hosts_file.read(str(tmp_path / name))

    return read


@pytest.fixture
def error_of(read, tmp_path: Path):
    """Return the error of a file, with the folder left out."""

    def error_of(text: str, name: str = "hosts.yml") -> str:
        with pytest.raises(ValueError) as caught:
            read(text, name)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return error_of


def test_hosts_have_the_file_s_fields_unless_they_have_their_own(read, tmp_path: Path) -> None:
    found = read(
        "address: 10.0.0.1:6400\n"
        "user: alice\n"
        "num_gpus: 8\n"
        "identity_file: keys/id\n"
        "hosts:\n"
        "  - node-a\n"
        "  - bob@node-b\n"
        "  - {host: node-c, user: carol, port: 2222, name: c, num_gpus: 4, labels: {rack: r1}}\n"
    )
    shared = {"identity_file": str(tmp_path / "keys/id")}
    assert found.address == "10.0.0.1:6400"
    assert found.hosts == (
        Host("node-a", "alice", options={"num_gpus": 8}, **shared),
        Host("node-b", "bob", options={"num_gpus": 8}, **shared),
        Host(
            "node-c",
            "carol",
            2222,
            name="c",
            options={"num_gpus": 4, "labels": {"rack": "r1"}},
            **shared,
        ),
    )


def test_a_pattern_is_several_hosts(read) -> None:
    found = read("hosts:\n  - gpu-[08-10]\n  - host: rack[1-2]n[1,3]\n    port: 23\n").hosts
    assert [each.shown for each in found] == [
        *("gpu-08", "gpu-09", "gpu-10"),
        *("rack1n1:23", "rack1n3:23", "rack2n1:23", "rack2n3:23"),
    ]


def test_all_errors_are_said_at_once(error_of) -> None:
    text = error_of(
        "usr: alice\n"
        "adress: 10.0.0.1:6400\n"
        "port: 70000\n"
        "hosts:\n"
        "  - host: node-a\n"
        "    num_cpu: 4\n"
        "    labels: [1]\n"
        "  - {name: b}\n"
        "  - 7\n"
        "  - -oProxyCommand=x\n"
        "  - {host: node-c, user: -x, name: 'no name'}\n"
        "  - {host: 'node-[3-1]'}\n"
    )
    assert text.splitlines() == [
        "hosts.yml has 11 errors",
        "  hosts.yml:1:1: the file has no 'usr': did you mean 'user'?",
        "  hosts.yml:2:1: the file has no 'adress': did you mean 'address'?",
        "  hosts.yml:3:7: port must be at most 65535, not 70000",
        "  hosts.yml:6:5: a host has no 'num_cpu': did you mean 'num_cpus'?",
        "  hosts.yml:7:13: labels must be a mapping with names as keys, not [1]",
        "  hosts.yml:8:5: a host needs `host`: its name or address",
        "  hosts.yml:9:5: a host is a name or a mapping with `host`, not 7",
        "  hosts.yml:10:5: '-oProxyCommand=x' is no host; it looks like node-a, 10.0.0.2 or "
        "alice@node-a",
        "  hosts.yml:11:26: user: '-x' is no name of a user",
        "  hosts.yml:11:36: 'no name' is no name of a node: up to 63 letters, digits, '.', '-' "
        "and '_', a letter or digit first",
        "  hosts.yml:12:5: the list of hosts 'node-[3-1]' has a range that is none: '3-1'",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "hosts.yml:1:1: the file is empty; it needs hosts, as hosts: [node-a, node-b]"),
        ("- node-a\n", "hosts.yml:1:1: a file of hosts is a mapping"),
        ("user: x\n", "hosts.yml:1:1: the file has no hosts"),
        ("hosts: []\n", "hosts.yml:1:8: the file has no hosts"),
        ("hosts: node-a\n", "hosts.yml:1:8: hosts must be a list"),
        ("hosts: [a\n", "hosts.yml:2:1: "),
        ("hosts: [a, b, A]\n", "hosts.yml:1:15: A is there twice: as host 1 and as host 3"),
        ("hosts:\n  - n[1-3]\n  - n2\n", "hosts.yml:3:5: n2 is there twice: as host 1 and"),
        ("hosts:\n  - {host: 'n[1-3]', name: x}\n", "are 3 hosts, which cannot have one name"),
        ("hosts: [a]\naddress: lab\n", "hosts.yml:2:10: 'lab' is no address"),
        ("hosts: [a]\nhosts: [b]\n", "hosts.yml:2:1: 'hosts' is there twice"),
        ("hosts: [a]\nmemory: much\n", "hosts.yml:2:9: memory must be a number of bytes"),
        ("hosts: ['n[1-9999]']\n", "hosts.yml:1:9: the file has more than 4096 hosts"),
        ('hosts: ["a b"]\n', "hosts.yml:1:9: 'a b' is no host"),
        ('hosts: [a]\ncommand: "x\\ny"\n', "hosts.yml:2:10: command: 'x\\ny' has more than one"),
    ],
)
def test_an_error_has_its_place(error_of, text: str, said: str) -> None:
    assert said in error_of(text)


def test_two_nodes_on_one_host_have_names(read) -> None:
    found = read("hosts:\n  - {host: a, name: one}\n  - {host: a, name: two}\n").hosts
    assert len({each.folder_name for each in found}) == 2


def test_the_guide_s_files_are_read(read) -> None:
    page = next((Path(__file__).parents[3] / "docs").rglob("ssh.md")).read_text()
    blocks = page.split("```")[1::2]
    (written,) = (each.removeprefix("yaml\n") for each in blocks if each.startswith("yaml\n"))
    assert [each.shown for each in read(written).hosts] == [
        *("alice@node-a", "bob@node-b", *(f"alice@gpu-{n:02}" for n in range(1, 17))),
        "alice@node-c:2222",
    ]
    (written,) = (each for each in blocks if each.startswith("\nnode-a slots"))
    assert [each.options for each in read(written, "hostfile").hosts] == 2 * [{"num_gpus": 8}]


def test_a_hostfile_is_read(read) -> None:
    found = read(
        "# eight each\nnode-a slots=8\n\nbob@node-b  slots=4 max_slots=9 # x\nnode-c\n", "h"
    )
    assert found.hosts == (
        Host("node-a", options={"num_gpus": 8}),
        Host("node-b", "bob", options={"num_gpus": 4}),
        Host("node-c"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "hosts names no host; a line looks like: node-a slots=8"),
        ("node-a\nnode-a slots=8\n", "hosts:2: node-a is there twice: first in line 1"),
        ("node-a slots=x\n", "hosts:1: 'slots=x' is not understood"),
        ("node-a slots=0\n", "hosts:1: slots must be 1 to 4096, not 0"),
        ("-x slots=1\nnode-a slot=1\n", "hosts:1: '-x' is no host"),
        ("-x slots=1\nnode-a slot=1\n", "hosts:2: 'slot=1' is not understood"),
    ],
)
def test_an_error_of_a_hostfile_has_its_line(error_of, text: str, said: str) -> None:
    assert said in error_of(text, "hosts")


def test_a_hostfile_of_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is no text"):
        hostfile.read(str(tmp_path / "hosts"))


def test_the_token_is_in_no_line_and_host_keys_are_checked() -> None:
    line = ssh_lines.client_line(Host("node-a", "alice", 2222, name="a"), "10.0.0.1:6400")
    options = [line[index + 1] for index, each in enumerate(line) if each == "-o"]
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes"} <= set(options)
    assert line[-3:-1] == ["--", "node-a"]
    assert line[line.index("-l") + 1] == "alice" and line[line.index("-p") + 1] == "2222"


def test_options_arrive_as_they_were_given() -> None:
    options = {
        "num_cpus": 2.5,
        "memory": 123456789012,
        "resources": {"a license": 2},
        "labels": {"rack": "r 1", "zone": "$HOME"},
        "preimport": [["torch", "numpy"], ["json"]],
    }
    line = ssh_lines.far_line(Host("a", command="cd /x && troupe", options=options), "h:1")
    assert line.startswith("cd /x && troupe start --address=h:1 ")
    assert shlex.split(line)[9:] == [
        "--num-cpus=2.5",
        "--memory=123456789012",
        '--resources={"a license": 2}',
        "--labels=rack=r 1",
        "--labels=zone=$HOME",
        "--preimport=torch,numpy",
        "--preimport=json",
    ]
