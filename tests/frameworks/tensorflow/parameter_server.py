"""A classifier on scikit-learn's digits with a parameter server and a training loop of its own: the
chief hands steps to the workers, and workers and parameter servers wait in `server.join()`, until
the job ends them."""

import json
import os

import tensorflow as tf
from sklearn.datasets import load_digits


def main() -> None:
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if task["type"] in ("worker", "ps"):
        print(task["type"], task["index"], "serves", flush=True)
        tf.distribute.Server(
            resolver.cluster_spec(),
            job_name=task["type"],
            task_index=task["index"],
            protocol="grpc",
            start=True,
        ).join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    data = load_digits()
    features, targets = (data.data / 16.0).astype("float32"), data.target.astype("int64")
    with strategy.scope():
        weights = tf.Variable(tf.zeros((64, 10)), name="weights")
    batch = 64

    def batches():
        made = (
            tf.data.Dataset.from_tensor_slices((features, targets))
            .shuffle(2000, seed=0)
            .repeat()
            .batch(batch)
        )
        return strategy.experimental_distribute_dataset(made)

    each_worker = iter(coordinator.create_per_worker_dataset(tf.function(batches)))

    @tf.function
    def step(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ weights)
                )
            weights.assign_sub(0.5 * tape.gradient(loss, weights))
            return loss

        return strategy.run(replica, args=next(iterator))

    for _ in range(300):
        coordinator.schedule(step, args=(each_worker,))
    coordinator.join()
    right = tf.reduce_mean(
        tf.cast(tf.argmax(features @ weights.numpy(), axis=1) == targets, tf.float32)
    )
    print(
        "chief",
        "of",
        resolver.cluster_spec().num_tasks("worker"),
        "workers: accuracy",
        round(float(right), 4),
        "on",
        weights.device.split("/")[1],
        flush=True,
    )


if __name__ == "__main__":
    main()
