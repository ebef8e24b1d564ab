"""Tiny-ImageNet: 110,000 colour photographs of 64 × 64 pixels in 200 classes (Le & Yang 2015).

The published validation images are the test part; the published test images have no labels and are not read.
"""

from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.data import Settings, Source
from unlearning_audit.data._pictures import images_below, pixels

URL, MD5 = "http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"
FOLDER = "tiny-imagenet-200"


class Options(Settings):
    """``data_dir``: the folder that holds tiny-imagenet-200/, relative to the working directory; ``download``: whether
    to download it (237 MB) if it is missing. ``image_size``: the width and height of images in pixels."""

    data_dir: str = "data"
    download: bool = False
    image_size: int = Field(64, ge=1)


def load(options: Options, root: Path) -> Source:
    """Read images uint8 [n, 3, image_size, image_size]: train/ by class and name, then val/ by name.

    With ``options.download``, the data set is downloaded first if its folder does not exist. Classes are numbered in
    the order of wnids.txt, which may name fewer than the published 200. Raises ValueError that names the file or
    folder.
    """
    folder = Path(root) / options.data_dir / FOLDER
    if options.download and not folder.exists():
        _download(folder.parent)
    names = _lines(folder / "wnids.txt")
    train = [(file, label) for label, name in enumerate(names) for file in _images(folder / "train" / name / "images")]
    test = _validation(folder / "val", {name: label for label, name in enumerate(names)})
    x = np.empty((len(train) + len(test), 3, options.image_size, options.image_size), dtype=np.uint8)
    for row, (file, _) in zip(x, train + test, strict=True):
        row[:] = pixels(file, options.image_size)
    y = np.array([label for _, label in train + test], dtype=np.int64)
    return Source(x, y, np.repeat(np.array([0, 1], np.uint8), (len(train), len(test))), len(names))


def _validation(folder: Path, numbers: dict[str, int]) -> list[tuple[Path, int]]:
    """Return (image file, class number) of the validation images in the ``folder``, sorted by file. Images of classes
    that are not in ``numbers``, name of a class → number, are left out.

    The class of each image is read from val_annotations.txt, whose lines are file name, class and four corners,
    separated by tabs.
    """
    cells = (line.split("\t") for line in _lines(folder / "val_annotations.txt"))
    return sorted((folder / "images" / name, numbers[wnid]) for name, wnid, *_ in cells if wnid in numbers)


def _images(folder: Path) -> list[Path]:
    """Return the paths of the images in the ``folder``. Raises ValueError for a folder without images."""
    files = images_below(folder)
    if not files:
        raise ValueError(f"{folder} holds no image; unpack the archive again")
    return files


def _lines(file: Path) -> list[str]:
    """Return the lines of a file. Raises ValueError if it cannot be read."""
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError) as error:
        expected = f"data_dir must hold {FOLDER}/ as it is published, or set download: true"
        raise ValueError(f"{file.absolute()} cannot be read ({error}); {expected}") from error


def _download(folder: Path) -> None:
    """Download the data set and unpack it in the ``folder``. Raises ValueError if this fails."""
    from torchvision.datasets.utils import download_and_extract_archive

    try:
        download_and_extract_archive(URL, str(folder), md5=MD5)
    except (OSError, RuntimeError) as error:
        raise ValueError(f"tinyimagenet: unpack {URL} into {folder.absolute()} by hand ({error})") from error
