"""Why a host did not come: decided by exit code and document, said with ssh's own lines."""

from __future__ import annotations

import pytest

from troupe._provision import causes


@pytest.mark.parametrize(
    ("code", "document", "said"),
    [
        (255, None, "ssh failed (exit code 255):\n  no"),
        (127, None, "the command was not found there (exit code 127):\n  no"),
        (126, None, "the command could not be run there (exit code 126):\n  no"),
        (2, None, "its troupe does not understand this one's command line (exit code 2)"),
        (-9, None, "the ssh client was killed by signal 9:\n  no"),
        (1, None, "the command there ended with exit code 1:\n  no"),
        (1, {"error": "JoinError", "text": "old"}, "troupe start failed there: JoinError: old"),
    ],
)
def test_the_exit_code_says_the_cause(code: int, document: dict | None, said: str) -> None:
    assert causes.cause_of_end(code, document, ["no"]).startswith(said)


def test_a_silent_client_is_said_to_be_silent() -> None:
    assert causes.cause_of_end(255, None, []) == "ssh failed (exit code 255): it said nothing"
    assert causes.cause_of_silence(3, []) == "its node did not join within 3 s; ssh was ended"


def test_output_of_start_up_files_is_skipped() -> None:
    output = b'welcome\n{"a": 1}\n[]\n\xff\n{"cluster_id": "c", "name": "n"}\nbye\n'
    assert causes.document_of(output) == {"cluster_id": "c", "name": "n"}
    assert causes.document_of(b'{"cluster_id": "c"}') is None  # the line is not whole


def test_the_last_lines_are_few_and_short() -> None:
    lines = causes.last_lines(b"a\n\nb\n  c\r\n" + b"d" * 9999 + b"\n \n")
    assert lines == ["b", "c", "d" * 400]
