"""resnet_actors_verbatim.py on a launch without GPUs. Changed, and nothing of the launcher's:

* the actors' device is the CPU, their group's backend gloo.
* bundles and actors ask for no GPU.
* a subset of 64 images, and batches of 8: two steps an epoch.
"""
import torch
from resnet18 import resnet18
from serverless_gpu.ray import ray_launch
from sklearn.datasets import load_digits
from torch import nn

IMAGES, BATCH_SIZE = 64, 8


def digits():
    data = load_digits()
    images = torch.tensor(data.images / 16.0, dtype=torch.float32).unsqueeze(1)
    return nn.functional.interpolate(images, size=32).expand(-1, 3, -1, -1), torch.tensor(data.target)


class Trainer:
    def __init__(self, index, count):
        self.count = count
        self.device = torch.device("cpu")
        x, y = digits()
        self.x, self.y = x[:IMAGES][index::count].to(self.device), y[:IMAGES][index::count].to(self.device)
        torch.manual_seed(0)
        self.model = resnet18(weights=None, num_classes=10).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)

    def train(self, batch_size):
        """One epoch; the mean loss."""
        from ray.util import collective

        losses = []
        for x, y in zip(self.x.split(batch_size), self.y.split(batch_size)):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            gradients = torch.cat([each.grad.flatten() for each in self.model.parameters()])
            collective.allreduce(gradients, group_name="trainers")
            gradients /= self.count
            nn.utils.vector_to_parameters(gradients, [each.grad for each in self.model.parameters()])
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def checksum(self):
        return sum(each.double().sum().item() for each in self.model.parameters())


@ray_launch(gpus=4, remote=True, gpu_type="A10")
def train_resnet(epochs):
    import ray
    from ray.util import collective
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    workers = 4
    group = ray.util.placement_group([{"CPU": 1}] * workers, strategy="PACK")
    ray.get(group.ready())
    trainer = ray.remote(num_cpus=1)(Trainer).options(scheduling_strategy=PlacementGroupSchedulingStrategy(group))
    trainers = [trainer.remote(index, workers) for index in range(workers)]
    collective.create_collective_group(trainers, workers, list(range(workers)), backend="gloo", group_name="trainers")
    losses = []
    for epoch in range(epochs):
        of_all = ray.get([each.train.remote(BATCH_SIZE) for each in trainers])
        losses.append(sum(of_all) / workers)
        print(f"epoch {epoch} loss {losses[-1]:.3f}")
    assert len(set(ray.get([each.checksum.remote() for each in trainers]))) == 1  # one model
    return losses


results = train_resnet.distributed(epochs=4)
losses = next(each for each in results if each)
print("results", len(results), "ranks; loss falls", losses[-1] < losses[0])
