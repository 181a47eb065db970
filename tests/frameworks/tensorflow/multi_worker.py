"""A classifier on scikit-learn's digits with MultiWorkerMirroredStrategy: the same model on each
worker, which TF_CONFIG makes one cluster."""

import json
import os

import tensorflow as tf
from sklearn.datasets import load_digits


def main() -> None:
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    tf.keras.utils.set_random_seed(0)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    data = load_digits()
    features, targets = (data.data / 16.0).astype("float32"), data.target.astype("int64")
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((64,)),
                tf.keras.layers.Dense(64, activation="relu"),
                tf.keras.layers.Dense(10),
            ]
        )
        optimizer = tf.keras.optimizers.Adam(5e-3)
        optimizer.build(model.trainable_variables)
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    batch = 128
    dataset = tf.data.Dataset.from_tensor_slices((features, targets)).batch(
        batch, drop_remainder=True
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batches = strategy.experimental_distribute_dataset(dataset.with_options(options))

    @tf.function
    def step(inputs):
        def replica(inputs):
            x, y = inputs
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True)) / batch
            optimizer.apply_gradients(
                zip(
                    tape.gradient(loss, model.trainable_variables),
                    model.trainable_variables,
                    strict=True,
                )
            )
            return loss

        return strategy.reduce(
            tf.distribute.ReduceOp.SUM, strategy.run(replica, args=(inputs,)), axis=None
        )

    for _ in range(10):
        for inputs in batches:
            loss = step(inputs)
    right = tf.reduce_mean(tf.cast(tf.argmax(model(features), axis=1) == targets, tf.float32))
    weights = float(sum(tf.reduce_sum(tf.abs(each)) for each in model.trainable_variables))
    tf.print(
        task["type"],
        task["index"],
        "of",
        strategy.num_replicas_in_sync,
        "loss",
        float(loss),
        "accuracy",
        float(right),
        "weights",
        f"{weights:.6f}",
        output_stream="file:///dev/stdout",
    )


if __name__ == "__main__":
    main()
