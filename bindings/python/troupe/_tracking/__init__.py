"""MLflow: a run per launch, which every rank's `mlflow.log_metric` reaches (docs/mlflow.md)."""
