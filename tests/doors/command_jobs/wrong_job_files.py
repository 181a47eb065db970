"""Job files that are wrong, each with the places (LINE:COLUMN) of its errors and words of its
message; and files that are right although they look wrong.

What is here refused or accepted was compared with `load_job` of azure-ai-ml 1.35.
"""

from __future__ import annotations

JOB = "command: echo hi\nenvironment: azureml:any@latest\n"
SWEEP = """type: sweep
trial: {command: "echo ${{search_space.lr}}", environment: azureml:any@latest}
search_space:
  lr: {type: uniform, min_value: 0.1, max_value: 0.9}
objective: {goal: minimize, primary_metric: loss}
sampling_algorithm: random
limits: {max_total_trials: 2}
"""

WRONG: dict[str, tuple[str, list[str], list[str]]] = {
    "a number in words": (
        JOB + "resources: {instance_count: two}\n",
        ["3:29"],
        ["resources: instance_count must be a whole number, not 'two'"],
    ),
    "a number with a fraction": (
        JOB + "resources:\n  instance_count: 1.5\n",
        ["4:19"],
        ["must be a whole number, not 1.5"],
    ),
    "no nodes": (JOB + "resources: {instance_count: 0}\n", ["3:29"], ["at least 1, not 0"]),
    "a list for resources": (JOB + "resources: [1]\n", ["3:12"], ["resources must be a mapping"]),
    "a key of resources": (
        JOB + "resources: {instance_cuont: 1}\n",
        ["3:13"],
        ["did you mean 'instance_count'?"],
    ),
    "a size of no unit": (JOB + "resources: {shm_size: 2x}\n", ["3:23"], ["shm_size", "2g"]),
    "an instance type that is a number": (
        JOB + "resources: {instance_type: 3}\n",
        ["3:28"],
        ["instance_type must be a string, not 3"],
    ),
    "no command": ("environment: azureml:any@latest\n", ["1:1"], ["a command job needs command"]),
    "an empty command": (
        "command: ''\nenvironment: azureml:any@latest\n",
        ["1:10"],
        ["command is empty"],
    ),
    "a command that is a list": (
        "command: [echo, hi]\nenvironment: azureml:any@latest\n",
        ["1:10"],
        ["command must be a string, not ['echo', 'hi']"],
    ),
    "a command that is a number": (
        "command: 3\nenvironment: azureml:any@latest\n",
        ["1:10"],
        ["command must be a string, not 3"],
    ),
    "a key": (
        JOB + "inputz: {}\n",
        ["3:1"],
        ["a command job has no 'inputz': did you mean 'inputs'?"],
    ),
    "a key that is a number": (JOB + "3: x\n", ["3:1"], ["a key must be a string, not 3"]),
    "a type": (JOB + "type: comand\n", ["3:7"], ["type is 'comand'", "did you mean 'command'?"]),
    "a pipeline": ("type: pipeline\njobs: {}\n", ["2:7"], ["a pipeline job needs jobs"]),
    "a spark job": ("type: spark\ncode: ./src\n", ["1:7"], ["type is 'spark'", "troupe.spark"]),
    "an automl job": ("type: automl\ntask: regression\n", ["1:7"], ["type is 'automl'", "sweep"]),
    "an output that is a path": (
        JOB + "outputs: {o: ./x}\n",
        ["3:14"],
        ["outputs: o: it must be a mapping", "path: ./x"],
    ),
    "outputs in a list": (JOB + "outputs: [o]\n", ["3:10"], ["outputs must be a mapping"]),
    "an output's type": (
        JOB + "outputs:\n  o: {type: uri_floder}\n",
        ["4:13"],
        ["did you mean 'uri_folder'?"],
    ),
    "an output's mode": (
        JOB + "outputs:\n  o: {type: uri_folder, mode: ro_mount}\n",
        ["4:31"],
        ["mode is 'ro_mount'", "did you mean 'rw_mount'?"],
    ),
    "an input's mode": (
        JOB + "inputs:\n  i: {type: uri_folder, path: ., mode: upload}\n",
        ["4:40"],
        ["mode is 'upload'", "download"],
    ),
    "an evaluated mount of a folder": (
        JOB + "inputs:\n  i: {type: uri_folder, path: ., mode: eval_mount}\n",
        ["4:40"],
        ["mltable"],
    ),
    "a mode that is near": (
        JOB + "inputs:\n  i: {type: uri_folder, path: ., mode: ro_mounts}\n",
        ["4:40"],
        ["did you mean 'ro_mount'?"],
    ),
    "an input's type": (
        JOB + "inputs:\n  i: {type: uri_fil, path: .}\n",
        ["4:13"],
        ["did you mean 'uri_file'?"],
    ),
    "an input's key": (
        JOB + "inputs:\n  i: {type: uri_file, paht: .}\n",
        ["4:23"],
        ["did you mean 'path'?"],
    ),
    "an input that is a list": (
        JOB + "inputs:\n  i: [1, 2]\n",
        ["4:6"],
        ["inputs: i: it must be a string, a number"],
    ),
    "a path that is a number": (
        JOB + "inputs:\n  i: {type: uri_file, path: 3}\n",
        ["4:29"],
        ["path must be a path or an address, not 3"],
    ),
    "a date": (
        JOB + "inputs: {a: 2024-01-01}\n",
        ["3:13"],
        ["inputs: a: it must be a string, a number"],
    ),
    "an input's name": (JOB + "inputs:\n  a b: 3\n", ["4:3"], ["'a b' is no name"]),
    "a literal out of its limits": (
        JOB + "inputs:\n  i: {type: integer, default: 9, max: 3}\n",
        ["4:31"],
        ["9"],
    ),
    "a literal of another type": (
        JOB + "inputs:\n  i: {type: integer, default: x}\n",
        ["4:31"],
        ["must be of type integer, not 'x'"],
    ),
    "variables in a list": (
        JOB + "environment_variables: [A=1]\n",
        ["3:24"],
        ["environment_variables must be a mapping"],
    ),
    "a variable that is a list": (
        JOB + "environment_variables: {A: [1]}\n",
        ["3:28"],
        ["A must be a string, a number"],
    ),
    "a variable with =": (
        JOB + "environment_variables: {A=B: 1}\n",
        ["3:25"],
        ["'A=B' is no name of an environment variable"],
    ),
    "an expression": (
        "command: echo ${{inputs.epoch}}\nenvironment: azureml:any@latest\ninputs: {epochs: 3}\n",
        ["1:10"],
        ["did you mean 'epochs'?"],
    ),
    "an expression without its end": (
        "command: echo ${{inputs.epochs\nenvironment: azureml:any@latest\ninputs: {epochs: 3}\n",
        ["1:10"],
        ["has no }} after it"],
    ),
    "an input without a value": (
        "command: echo ${{inputs.d}}\nenvironment: azureml:any@latest\ninputs:\n  d:\n",
        ["4:5"],
        ["inputs: d has no value"],
    ),
    "a distribution": (
        JOB + "distribution: {type: pytorh}\n",
        ["3:22"],
        ["did you mean 'pytorch'?"],
    ),
    "a distribution without a type": (
        JOB + "distribution: {process_count_per_instance: 2}\n",
        ["3:15"],
        ["distribution has no 'type'"],
    ),
    "a distribution's count": (
        JOB + "distribution: {type: mpi, process_count_per_instance: many}\n",
        ["3:55"],
        ["process_count_per_instance must be a whole number"],
    ),
    "a distribution's key": (
        JOB + "distribution: {type: mpi, proces_count_per_instance: 2}\n",
        ["3:27"],
        ["did you mean 'process_count_per_instance'?"],
    ),
    "a text for a distribution": (
        JOB + "distribution: pytorch\n",
        ["3:15"],
        ["distribution must be a mapping with 'type'"],
    ),
    "a time in words": (
        JOB + "limits: {timeout: 1h}\n",
        ["3:19"],
        ["timeout must be a number of seconds"],
    ),
    "a key of limits": (JOB + "limits: {time_out: 3}\n", ["3:10"], ["did you mean 'timeout'?"]),
    "a priority": (JOB + "queue_settings: {priority: hihg}\n", ["3:28"], ["did you mean 'high'?"]),
    "a tier": (
        JOB + "queue_settings: {job_tier: standart}\n",
        ["3:28"],
        ["did you mean 'standard'?"],
    ),
    "tags in a list": (JOB + "tags: [a]\n", ["3:7"], ["tags must be a mapping"]),
    "a tag that is a number": (
        JOB + "tags: {a: 3}\n",
        ["3:11"],
        ["tags: a must be a string, not 3; quote it: '3'"],
    ),
    "a tag that is a list": (
        JOB + "tags: {a: [1]}\n",
        ["3:11"],
        ["tags: a must be a string, not [1]"],
    ),
    "a description that is a list": (
        JOB + "description: [x]\n",
        ["3:14"],
        ["description must be a string"],
    ),
    "a name that is a list": (JOB + "name: [x]\n", ["3:7"], ["name must be a string"]),
    "a name with a space": (JOB + "name: my job\n", ["3:7"], ["name is 'my job'"]),
    "code that is a list": (JOB + "code: [./src]\n", ["3:7"], ["code must be a path"]),
    "an environment that is a number": (
        "command: x\nenvironment: 3\n",
        ["2:14"],
        ["environment must be"],
    ),
    "an environment's key": (
        "command: x\nenvironment: {imag: y}\n",
        ["2:15"],
        ["did you mean 'image'?"],
    ),
    "a key twice": (JOB + "command: again\n", ["3:1"], ["'command' is there twice"]),
    "no YAML": ("command: [\n", ["2:1"], []),
    "a tab": ("command: x\ninputs:\n\ta: 1\n", ["3:1"], ["there is a tab"]),
    "a list": ("- command: x\n", ["1:1"], ["must be a mapping"]),
    "workers with mpi": (
        JOB + "distribution: {type: mpi, worker_count: 2}\n",
        ["3:27"],
        ["a distribution of type mpi has no 'worker_count', which is of type tensorflow"],
    ),
    "processes of an instance with tensorflow": (
        JOB + "distribution: {type: tensorflow, process_count_per_instance: 2}\n",
        ["3:34"],
        ["which is of type pytorch or mpi"],
    ),
    "an identity that is a text": (JOB + "identity: me\n", ["3:11"], ["must be a mapping"]),
    "an identity's type": (
        JOB + "identity: {type: user_idenity}\n",
        ["3:18"],
        ["did you mean 'user_identity'?"],
    ),
    "an identity's key": (
        JOB + "identity: {type: user_identity, client_id: x}\n",
        ["3:44"],
        ["identity of type user_identity has no 'client_id'"],
    ),
    "an identity without a type": (JOB + "identity: {}\n", ["3:11"], ["identity needs type"]),
    "services in places": (
        JOB
        + "services:\n  a: {type: ssh, nodes: some}\n  b: {type: vs_code, port: x}\n  c: ssh\n"
        + "  d:\n  e: {type: tensor_board, ssh_public_keys: k}\n  f: {type: ssh, prot: 1}\n",
        ["4:25", "5:28", "6:6", "7:5", "8:44", "9:18"],
        ["nodes is 'some'", "services: c must be a mapping", "did you mean 'port'?"],
    ),
    "no environment": (
        "command: echo hi\n",
        ["1:1"],
        ["a command job needs environment, as azureml:NAME@latest"],
    ),
    "an environment that is empty": (
        "command: echo hi\nenvironment:\n",
        ["2:13"],
        ["needs environment"],
    ),
    "a sweep without an environment": (
        SWEEP.replace(", environment: azureml:any@latest", ""),
        ["2:8"],
        ["trial needs environment"],
    ),
    "resources of wrong types": (
        JOB + "resources:\n  docker_args: 3\n  locations: west\n  properties: [1]\n",
        ["4:16", "5:14", "6:15"],
        ["docker_args must be a list of strings", "locations must be a list of strings"],
    ),
    "a word for true or false": (
        JOB + "is_deterministic: sometimes\n",
        ["3:19"],
        ["is_deterministic must be true or false, not 'sometimes'"],
    ),
    "an output's name that is a list": (
        JOB + "outputs: {o: {type: uri_folder, name: [x]}}\n",
        ["3:39"],
        ["name must be a string"],
    ),
    "a policy's key": (
        SWEEP + "early_termination: {type: bandit, slack: 0.1}\n",
        ["8:35"],
        ["a policy of type bandit has no 'slack'"],
    ),
    "nothing": ("", ["1:1", "1:1"], ["needs command: the line", "needs environment, as"]),
    "several": (
        "command: echo ${{inputs.x}}\nenvironment: azureml:any@latest\ninputs: {y: "
        "[1]}\nresources: {instance_count: two, shm_siz: 3}\ncompue: c\n",
        ["1:10", "3:13", "4:29", "4:34", "5:1"],
        ["job.yml has 5 errors", "did you mean 'compute'?", "did you mean 'shm_size'?"],
    ),
    "a sweep's expression": (
        SWEEP.replace("${{search_space.lr}}", "${{search_space.lrr}}"),
        ["2:18"],
        [
            "trial: command: ${{search_space.lrr}}",
            "search_space has no 'lrr'",
            "did you mean 'lr'?",
        ],
    ),
    "a sweep's distribution": (
        SWEEP.replace("uniform", "unifrom"),
        ["4:14"],
        ["did you mean 'uniform'?"],
    ),
    "a sweep's bound": (
        SWEEP.replace("0.1", "low"),
        ["4:34"],
        ["min_value must be a number, not 'low'"],
    ),
    "a sweep without a bound": (
        SWEEP.replace("min_value: 0.1, ", ""),
        ["4:7"],
        ["needs min_value"],
    ),
    "a sweep's goal": (
        SWEEP.replace("minimize", "minimise"),
        ["5:19"],
        ["did you mean 'minimize'?"],
    ),
    "a sweep's metric": (
        SWEEP.replace("primary_metric: loss", "metric: loss"),
        ["5:29"],
        ["did you mean 'primary_metric'?"],
    ),
    "a sweep's algorithm": (
        SWEEP.replace(": random", ": randm"),
        ["6:21"],
        ["did you mean 'random'?"],
    ),
    "a sweep's limits": (
        SWEEP.replace("max_total_trials: 2", "max_total_trials: few"),
        ["7:28"],
        ["max_total_trials must be a whole number"],
    ),
    "a sweep's key": (
        SWEEP + "early_terminaton: {type: bandit}\n",
        ["8:1"],
        ["did you mean 'early_termination'?"],
    ),
    "a sweep's policy": (
        SWEEP + "early_termination: {type: bandits, slack_factor: 0.1}\n",
        ["8:27"],
        ["did you mean 'bandit'?"],
    ),
    "a policy's value": (
        SWEEP + "early_termination: {type: bandit, slack_factor: much}\n",
        ["8:49"],
        ["slack_factor"],
    ),
    "a sweep without a trial": (
        SWEEP.replace("trial: {", "description: '{").replace("latest}", "latest}'"),
        ["1:1"],
        ["a sweep job needs trial"],
    ),
    "a trial's key": (
        SWEEP.replace("trial: {", "trial: {comand: x, "),
        ["2:9"],
        ["did you mean 'command'?"],
    ),
    "a grid of numbers": (
        SWEEP.replace(": random", ": grid"),
        ["4:7"],
        ["grid sampling takes Choice"],
    ),
    "several of a sweep": (
        SWEEP.replace("0.9}", "high}\n  b: {type: choice, values: 3}").replace("minimize", "less"),
        ["4:50", "5:29", "6:19"],
        ["job.yml has 3 errors"],
    ),
}

RIGHT: dict[str, str] = {
    "a number in quotes": JOB + "resources: {instance_count: '4'}\n",
    "all numbers in quotes": JOB
    + "limits: {timeout: '60'}\ndistribution: {type: mpi, process_count_per_instance: '2'}\n",
    "names with dashes": "command: echo ${{inputs.learning-rate}} $[[${{inputs.other-one}}]] > "
    "${{outputs.the-out}}/x\nenvironment: azureml:any@latest\n"
    "inputs: {learning-rate: 0.1, other-one: {type: number, optional: true}}\noutputs: {the-out: "
    "}\n",
    "services and identities": JOB
    + "identity: {type: managed_identity, client_id: x}\nresources: {locations: [west]}\nservices: "
    "{a: {type: ssh, nodes: all, ssh_public_keys: k}, b: {type: JupyterLab}, c: {port: 3}}\n",
    "a word that YAML takes for a boolean": JOB + "inputs: {b: on}\n",
    "variables of numbers": JOB + "environment_variables: {A: 3, B: true, C: x, D: null}\n",
    "sizes": JOB + "resources: {shm_size: 2g, docker_args: --ipc host}\n",
    "words in another case": JOB
    + (
        "type: command\nqueue_settings: {priority: High, job_tier: Spot}\ndistribution: {type: "
        "PyTorch}\n"
    ),
    "an input that a call gives its path": "command: cat ${{inputs.d}}\nenvironment: "
    "azureml:any@latest\ninputs:\n  d: {type: uri_file}\n",
    "modes": JOB
    + "inputs:\n  a: {type: uri_folder, path: ., mode: download}\n  b: {type: mltable, path: ., "
    "mode: eval_mount}\n  c: {path: ., mode: direct}\n"
    "outputs:\n  o: {type: uri_folder, mode: rw_mount}\n  p: {mode: upload}\n  q:\n",
    "an anchor": JOB + "tags: &t {a: b}\nproperties: *t\n",
    "a merged mapping": JOB + "tags: &t {a: b}\nproperties: {<<: *t, c: d}\n",
    "a sweep": SWEEP,
    "a sweep with its numbers in quotes": SWEEP.replace(
        "max_total_trials: 2", "max_total_trials: '2'"
    ),
    "a sweep with a policy": SWEEP
    + (
        "early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 2, "
        "delay_evaluation: 1}\n"
    ),
}
