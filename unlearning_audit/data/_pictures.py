"""Read single image files."""

from pathlib import Path
from typing import Any

import numpy as np

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def images_below(folder: Path) -> list[Path]:
    """Return the files below a folder that have an image's suffix (`SUFFIXES`), sorted by path."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())


def pixels(file: Path, size: int) -> np.ndarray:
    """Return one image, uint8 [3, ``size``, ``size``], resized (by `resized`) without keeping the aspect ratio. Raises
    ValueError that names the file."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            if image.mode[0] in "IF":  # whole numbers and reals, which Pillow would clip to 255
                raise ValueError(f"its pixels are wider than 8 bits, mode {image.mode}")
            return resized(image, size)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{file} cannot be read as an 8-bit image ({error}); convert or remove it") from error


def resized(image: Any, size: int) -> np.ndarray:
    """Return the pixels of a Pillow ``image`` in RGB, uint8 [3, ``size``, ``size``], resized without keeping the aspect
    ratio. An image that has this size already keeps its pixels."""
    from PIL import Image

    converted = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(converted).transpose(2, 0, 1)
