"""CIFAR-100: 60,000 colour photographs in 100 classes (Krizhevsky 2009); fine labels."""

from pathlib import Path

from unlearning_audit.data import Source, _torchvision

FILES = "cifar-100-python/ with train, test and meta, the unpacked cifar-100-python.tar.gz"


class Options(_torchvision.Options):
    """Where the files are, and whether they may be downloaded."""


def load(options: Options, root: Path) -> Source:
    """Read images uint8 [60000, 3, 32, 32]: 50,000 for training, then 10,000 for testing. Raises ValueError if files
    are missing."""
    return _torchvision.read("CIFAR100", options, root, files=FILES, train=50_000, test=10_000, classes=100)
