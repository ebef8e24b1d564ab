"""Read a data set of torchvision in its canonical order: the training part, then the test part."""

from pathlib import Path

import numpy as np

from unlearning_audit.data import Settings, Source


class Options(Settings):
    """``data_dir``: a folder as torchvision lays it out, relative to the working directory; ``download``: whether to
    download missing files into it."""

    data_dir: str = "data"
    download: bool = False


def read(dataset: str, options: Options, root: Path, *, files: str, train: int, test: int, classes: int) -> Source:
    """Read ``torchvision.datasets.<dataset>`` as uint8 images [train + test, channels, height, width].

    torchvision checks the md5 sums of CIFAR's files and of its downloads.

    Parameters
    ----------
    files
        What must lie in ``options.data_dir``, in words, for messages.
    train, test
        The numbers of samples that the two parts must have.
    classes
        The number of classes.

    Raises
    ------
    ValueError
        If files cannot be read, or have other numbers of samples.
    """
    from torchvision import datasets

    folder = Path(root) / options.data_dir
    parts = []
    for is_train in (True, False):
        try:
            parts.append(getattr(datasets, dataset)(folder, train=is_train, download=options.download))
        except (OSError, RuntimeError, AssertionError, TypeError, ValueError) as error:
            remedy = "try again or" if options.download else "set download: true or"
            problem = f"{dataset}: {folder.absolute()} must hold {files}, whole; {remedy} put them there ({error})"
            raise ValueError(problem) from error
    sizes = tuple(len(part) for part in parts)
    if sizes != (train, test):
        raise ValueError(
            f"{dataset}: {folder.absolute()} holds {sizes[0]} training and {sizes[1]} test images instead of "
            f"{train} and {test}; put the official files there, or read data of your own with 'arrays'"
        )
    x = np.concatenate([np.asarray(part.data) for part in parts])
    # Grey images get an axis of one channel. Of colour images torchvision has the channels last, and a Source first.
    x = x[:, None] if x.ndim == 3 else x.transpose(0, 3, 1, 2)
    y = np.concatenate([np.asarray(part.targets, dtype=np.int64) for part in parts])
    return Source(np.ascontiguousarray(x), y, np.repeat(np.array([0, 1], np.uint8), sizes), classes)
