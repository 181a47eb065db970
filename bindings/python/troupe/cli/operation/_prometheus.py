"""`troupe prometheus`: what Prometheus is to be told of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import home, local_clusters
from troupe.cli import _common

HEAD_NAME = "troupe-head"
"""A name in the certificate of every head (head/server/server.cc)."""
TARGETS_PATH = "/api/v1/prometheus-sd"


@click.group()
def prometheus() -> None:
    """Let Prometheus scrape a cluster."""


@prometheus.command()
@click.option("--job-name", default="troupe", show_default=True, help="Name of the scrape job.")
@click.option("--interval", default="15s", show_default=True, help="How often to scrape.")
@click.option(
    "--credentials-file",
    type=click.Path(path_type=Path),
    default="troupe-observer.token",
    show_default=True,
    help="File with an observer's token, as Prometheus finds it.",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path),
    help="The cluster's certificate authority.  [default: that of a head on this host]",
)
@click.option(
    "--static", is_flag=True, help="Name the head's address instead of service discovery."
)
@click.option("--dcgm-names", is_flag=True, help="GPUs by the names of NVIDIA's exporter, too.")
@click.option("--ray-names", is_flag=True, help="The cluster by the names of Ray's metrics, too.")
@_common.cluster_options
def config(
    job_name: str,
    interval: str,
    credentials_file: Path,
    ca_file: Path | None,
    static: bool,
    dcgm_names: bool,
    ray_names: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print the section `scrape_configs` of prometheus.yml for a cluster.

    troupe token create --role observer --ttl 90d > troupe-observer.token
    troupe prometheus config > prometheus.yml
    """
    chosen = _common.which_cluster(address, cluster)
    tls = {
        "ca_file": str((ca_file or _authority_of(chosen.address)).absolute()),
        "server_name": HEAD_NAME,
    }
    bearer = {"type": "Bearer", "credentials_file": str(credentials_file.absolute())}
    names = [name for name, wanted in (("dcgm", dcgm_names), ("ray", ray_names)) if wanted]
    job: dict[str, Any] = {
        "job_name": job_name,
        "scheme": "https",
        "scrape_interval": interval,
        **({"params": {"names": [",".join(names)]}} if names else {}),
        "authorization": bearer,
        "tls_config": tls,
    }
    if static:
        job["static_configs"] = [{"targets": [chosen.address]}]
    else:
        url = f"https://{chosen.address}{TARGETS_PATH}"
        job["http_sd_configs"] = [{"url": url, "authorization": bearer, "tls_config": tls}]
    document = {"scrape_configs": [job]}
    if as_json:
        _common.echo_json(document)
        return
    if not credentials_file.exists():
        click.echo(
            f"{credentials_file} is not there yet: troupe token create --role observer --ttl 90d "
            f"> {credentials_file}",
            err=True,
        )
    click.echo(to_yaml(document), nl=False)


def _authority_of(address: str) -> Path:
    for each in [*home.clusters(running_only=True), *local_clusters.clusters()]:
        path = each.path / "head" / "ca.crt"
        if each.address == local_clusters.numeric(address) and path.exists():
            return path
    raise exceptions.ConnectionError(
        f"the head at {address} does not run on this host: copy ca.crt from the folder `head` of "
        "its cluster, and say where it is with --ca-file"
    )


def to_yaml(value: Any, indent: str = "") -> str:
    """Return dicts, lists and texts as a block of YAML: texts are quoted as in JSON."""
    lines = []
    for key, item in value.items():
        if isinstance(item, dict):
            lines.append(f"{indent}{key}:\n{to_yaml(item, indent + '  ')}")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            lines.append(f"{indent}{key}:\n")
            for each in item:
                block = to_yaml(each, indent + "    ")
                lines.append(f"{indent}  - {block[len(indent) + 4 :]}")
        else:
            lines.append(f"{indent}{key}: {json.dumps(item)}\n")
    return "".join(lines)
