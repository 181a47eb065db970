"""What the job of `tensorflow_verbatim.py` runs in each process: a classifier with MultiWorkerMirroredStrategy, on GPUs."""
import json
import os

import tensorflow as tf
from sklearn.datasets import load_digits

options = tf.distribute.experimental.CommunicationOptions(implementation=tf.distribute.experimental.CommunicationImplementation.NCCL)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
digits = load_digits()
batch = 64 * strategy.num_replicas_in_sync
data = tf.data.Dataset.from_tensor_slices(((digits.data / 16).astype("float32"), digits.target)).shuffle(2000, seed=0).batch(batch, drop_remainder=True)
batches = strategy.experimental_distribute_dataset(data)
with strategy.scope():
    weights = tf.Variable(tf.zeros((64, 10)))


@tf.function
def step(inputs):
    def replica(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ weights)) / batch
        gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
        weights.assign_sub(0.5 * gradient)

    strategy.run(replica, args=(inputs,))


for _ in range(20):
    for inputs in batches:
        step(inputs)
accuracy = float(tf.reduce_mean(tf.cast(tf.argmax((digits.data / 16).astype("float32") @ weights.numpy(), axis=1) == digits.target, tf.float32)))
print(f"accuracy {accuracy:.3f} of worker {json.loads(os.environ['TF_CONFIG'])['task']['index']}", flush=True)
