"""MLflow: a run per launch, which every rank's `mlflow.log_metric` reaches
(docs/guides/mlflow.md)."""
