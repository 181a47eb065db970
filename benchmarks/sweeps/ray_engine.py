"""The engine that Ray's schedulers expect: trials and a controller."""

from typing import Any


class RayTrial:
    """The trial that Ray's schedulers expect."""

    def __init__(self, name: str) -> None:
        self.trial_id = self.experiment_tag = name
        self.status, self.config, self.evaluated_params = "PENDING", {"lr": 1.0}, {}
        self.is_saving, self.checkpoint, self.last_result = False, None, {"training_iteration": 0}
        self.run_metadata = self.temporary_state = self
        self.checkpoint_manager, self.saving_to = self, None
        self.checkpoint_config = self
        self.num_to_keep, self.local_dir, self.local_experiment_path = None, "/nowhere", "/nowhere"

    def is_finished(self) -> bool:
        return self.status in ("TERMINATED", "ERROR")

    def set_experiment_tag(self, tag: str) -> None:
        pass

    def set_config(self, config: dict) -> None:
        self.config = config


class RayController:
    """The engine that Ray's schedulers expect."""

    search_alg = None

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.trials, self.copies = scheduler, [], []

    def get_trials(self) -> list:
        return list(self.trials)

    def get_live_trials(self) -> list:
        return [trial for trial in self.trials if not trial.is_finished()]

    def stop_trial(self, trial: RayTrial) -> None:
        trial.status = "TERMINATED"
        self.scheduler.on_trial_remove(self, trial)

    def pause_trial(self, trial: RayTrial, should_checkpoint: bool = True) -> None:
        trial.status = "PAUSED"

    def _schedule_trial_save(self, trial: RayTrial, result: dict | None = None) -> str:
        return f"a checkpoint of {trial.trial_id}"
