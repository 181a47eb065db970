"""Operations of the service that are none here, with what to use instead."""

from __future__ import annotations

NOT_HERE = {
    "data": "give a path where a job takes an input: Input(type='uri_folder', path=...)",
    "datastores": "give a path, file:///PATH on the nodes, or an https:// address of a file",
    "environments": "what is installed on the nodes is what jobs run with",
    "compute": "a cluster's nodes are those that joined it (troupe status); instance_types.yml "
    "says what a name of compute means",
    "models": "a job's outputs are files: jobs.download(name, output_name=...)",
    "components": "load_component gives the component of a file, and command(...) makes one; steps "
    "call it with their values",
    "batch_endpoints": "an actor serves: troupe.remote(Class).remote()",
    "online_endpoints": "an actor serves: troupe.remote(Class).remote()",
    "workspaces": "there is one cluster, that of TROUPE_ADDRESS",
    "schedules": "a timer of the system can run `troupe azure job create`",
}


NO_METHODS = {
    "archive": "jobs go by themselves, a week after they ended",
    "begin_delete": "jobs go by themselves, a week after they ended",
    "restore": "nothing is archived here",
    "show_services": "no service runs beside a job",
    "update": "give what describes a job before it is submitted",
    "validate": "load_job and create_or_update check a job before anything starts",
}
"""Methods of the service's `jobs`, with what to do instead."""

INSTEAD_OF = {
    "Data": "data",
    "Environment": "environments",
    "AmlCompute": "compute",
    "Model": "models",
    "Workspace": "workspaces",
}
"""By the name of an entity, the operations that would take it."""
