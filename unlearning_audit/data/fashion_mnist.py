"""Fashion-MNIST: 70,000 grey photographs of 10 kinds of clothing (Xiao et al. 2017)."""

from pathlib import Path

from unlearning_audit.data import Source, _torchvision

FILES = (
    "FashionMNIST/raw/ with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte "
    "and t10k-labels-idx1-ubyte, unpacked with gunzip"
)


class Options(_torchvision.Options):
    """Where the files are, and whether they may be downloaded."""


def load(options: Options, root: Path) -> Source:
    """Read images uint8 [70000, 1, 28, 28]: 60,000 for training, then 10,000 for testing. Raises ValueError if files
    are missing."""
    return _torchvision.read("FashionMNIST", options, root, files=FILES, train=60_000, test=10_000, classes=10)
