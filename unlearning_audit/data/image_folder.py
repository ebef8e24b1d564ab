"""Image folder: the user's own directory with train/<class>/ and, if there is a test part, test/<class>/."""

from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.data import Settings, Source
from unlearning_audit.data._pictures import SUFFIXES, images_below, pixels

#: The source needs no download.
AT_HAND = True


class Options(Settings):
    """``path``: the directory, relative to the working directory. Every image becomes ``image_size`` × ``image_size``
    pixels (bilinear with anti-aliasing, aspect ratio not kept)."""

    path: str
    image_size: int = Field(32, ge=1)


def load(options: Options, root: Path) -> Source:
    """Read images uint8 [n, 3, image_size, image_size].

    Classes are the sorted names of the folders in train/. Samples of train/ come first, then those of test/, if it
    exists; in either, they are sorted by class, then by path. Files without an image's suffix are skipped. Raises
    ValueError that names the folder or the file.
    """
    path = Path(root) / options.path
    # A folder val/ alone would be ignored in silence.
    if (path / "val").is_dir() and not (path / "test").exists():
        raise ValueError(f"{path / 'val'}: images are read from train/ and test/; rename it to test, or move it away")
    classes = _folders(path / "train")
    if len(classes) < 2:
        raise ValueError(f"{path / 'train'} must hold one folder of images for each class, at least two")
    of_test = _folders(path / "test") if (path / "test").exists() else []
    if unknown := set(of_test) - set(classes):
        raise ValueError(f"{path / 'test' / min(unknown)}: train/ has no such class; rename or remove the folder")
    files, y, part = [], [], []
    for number, name in enumerate(("train", "test")):
        for label, folder in enumerate(classes):
            images = images_below(path / name / folder)
            if name == "train" and not images:
                raise ValueError(f"{path / name / folder} holds no image ({', '.join(SUFFIXES)}); add or remove")
            files += images
            y += [label] * len(images)
            part += [number] * len(images)
    x = np.empty((len(files), 3, options.image_size, options.image_size), dtype=np.uint8)
    for row, file in zip(x, files, strict=True):
        row[:] = pixels(file, options.image_size)
    return Source(x, np.array(y, dtype=np.int64), np.array(part, dtype=np.uint8), len(classes))


def _folders(path: Path) -> list[str]:
    """Return the names of the folders in ``path``, sorted, without hidden ones. Raises ValueError if it is not a
    directory."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a directory; images are read from train/<class>/ and test/<class>/")
    return sorted(child.name for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
