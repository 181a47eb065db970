"""Words of a job's inputs and outputs, and of lists of jobs."""

from __future__ import annotations


class AssetTypes:
    """The types of inputs and outputs."""

    URI_FILE = "uri_file"
    URI_FOLDER = "uri_folder"
    MLTABLE = "mltable"
    CUSTOM_MODEL = "custom_model"
    MLFLOW_MODEL = "mlflow_model"
    TRITON_MODEL = "triton_model"


class InputOutputModes:
    """How an input comes to the command: docs/coming/azure.md says what each mode does."""

    MOUNT = "mount"
    DOWNLOAD = "download"
    UPLOAD = "upload"
    RO_MOUNT = "ro_mount"
    RW_MOUNT = "rw_mount"
    EVAL_MOUNT = "eval_mount"
    EVAL_DOWNLOAD = "eval_download"
    DIRECT = "direct"


class ListViewType:
    """Choice of the jobs that `jobs.list` gives; none is archived here."""

    ACTIVE_ONLY = "ActiveOnly"
    ARCHIVED_ONLY = "ArchivedOnly"
    ALL = "All"
