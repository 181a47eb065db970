"""Experiments as DeepSpeed's autotuning starts them: by its own ResourceManager, over the nodes of
its own hostfile, without a tuning.

python experiments.py HOSTFILE SLOTS FOLDER SCRIPT
"""

import json
import sys
import types
from pathlib import Path

from deepspeed.autotuning.scheduler import ResourceManager
from deepspeed.launcher.runner import fetch_hostfile


def main(hostfile: str, slots: str, folder: str, script: str) -> None:
    """Run an experiment on each node alone, and one over both; output of each is under FOLDER, by
    its name."""
    hosts = fetch_hostfile(hostfile)
    args = types.SimpleNamespace(
        master_port=29600, user_script=script, user_args=["--deepspeed", "ds_config.json"]
    )
    manager = ResourceManager(
        args, list(hosts), int(slots), f"{folder}/results", f"{folder}/exps", None
    )
    for name, nodes in (("alone_1", 1), ("alone_2", 1), ("both", 2)):
        file = Path(folder, f"{name}.json")
        file.write_text(
            json.dumps(
                {
                    "name": name,
                    "num_gpus": int(slots),
                    "num_nodes": nodes,
                    "hostfile": hostfile,
                    "ds_config": {"name": name},
                }
            )
        )
        manager.schedule_experiments([str(file)])
    manager.run()
    for name, error in manager.finished_experiments.values():
        print("experiment", name["name"], "error", error)
    for name in ("alone_1", "alone_2", "both"):
        result = Path(folder, "results", name)
        for line in sorted((result / "stdout.log").read_text().splitlines()):
            if " here " in line:
                print(name, line)
        print(name, "was", (result / "cmd.txt").read_text().strip())
        print(name, "said", (result / "stderr.log").read_text().strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
