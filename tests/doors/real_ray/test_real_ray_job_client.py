"""Ray's own `ray job` against a cluster of Troupe, over `troupe ray-jobs serve`.

Method: the command of the Ray that is installed, in processes of its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

RAY = shutil.which("ray", path=f"{Path(sys.executable).parent}:/usr/bin") or shutil.which("ray")
pytestmark = pytest.mark.skipif(RAY is None, reason="Ray is not installed")
USES_RAY = """
import os, ray
ray.init()
print(ray.get(ray.remote(lambda: (open("data.txt").read(), os.environ["COLOUR"])).remote()))
"""
LINES = """
set -x
ray job submit --submission-id one --working-dir {folder} --metadata-json '{{"team": "blue"}}' \\
  --runtime-env-json '{{"env_vars": {{"COLOUR": "red"}}}}' -- {python} uses_ray.py || exit 11
ray job submit --no-wait --submission-id two -- \\
  bash -c 'for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 3' || exit 12
ray job logs --follow two
ray job status two
ray job submit --no-wait --submission-id long -- sleep 1000 || exit 13
ray job stop long || exit 14
ray job list || exit 15
ray job logs one || exit 16
ray job delete long || exit 17
ray job status long && exit 18
env -u RAY_AUTH_MODE -u RAY_AUTH_TOKEN_PATH ray job list && exit 19
exit 0
"""


def test_rays_own_command_submits_follows_stops_lists_and_deletes(
    cluster: Home, tmp_path: Path
) -> None:
    (tmp_path / "uses_ray.py").write_text(USES_RAY)
    (tmp_path / "data.txt").write_text("hello")
    lines = LINES.format(folder=tmp_path, python=sys.executable).replace("ray job", f"{RAY} job")
    done = cluster.run(
        "ray-jobs", "serve", "--", "bash", "-c", lines, ok=False, timeout=6 * TIMEOUT_S
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert told.count("('hello', 'red')") == 2, "followed, and read again"
    assert "Job 'one' succeeded" in told and "line 1\nline 2\nline 3\n" in done.stdout
    assert "Job 'two' failed" in told and "Job 'long' was stopped" in told
    assert "Job 'long' deleted successfully" in told and "there is no job 'long'" in told
    assert "show the token of this server" in told
