"""ResNet-18 as torchvision's `resnet18(weights=None)` is, with its names of parameters: for machines without torchvision."""
from torch import nn


class BasicBlock(nn.Module):
    """Two convolutions and what goes around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        """The block's output."""
        around = x if self.downsample is None else self.downsample(x)
        out = nn.functional.relu(self.bn1(self.conv1(x)))
        return nn.functional.relu(self.bn2(self.conv2(out)) + around)


class ResNet(nn.Module):
    """Four layers of two blocks each."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = (64, 128, 256, 512)
        for number, (inputs, outputs) in enumerate(zip((64, *widths), widths), 1):
            layer = nn.Sequential(BasicBlock(inputs, outputs, 1 if number == 1 else 2), BasicBlock(outputs, outputs, 1))
            self.add_module(f"layer{number}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x):
        """A score for each class."""
        x = self.maxpool(nn.functional.relu(self.bn1(self.conv1(x))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(weights=None, num_classes=1000):
    """The network with random weights; there are no others here."""
    assert weights is None
    return ResNet(num_classes)
