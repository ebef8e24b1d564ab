"""Read single image files."""

from pathlib import Path

import numpy as np

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def listed(path: Path) -> list[Path]:
    """Return the images below a folder, sorted by path."""
    return sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())


def pixels(file: Path, size: int, *, grey: bool = False) -> np.ndarray:
    """Read one image, uint8 [1 if ``grey`` else 3, size, size], resized by bilinear interpolation with anti-aliasing;
    the aspect ratio is not kept. Raises ValueError that names the file."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            if image.mode[0] in "IF":  # Pillow would clip 16-bit pixels to 255
                raise ValueError(f"its pixels are wider than 8 bits, mode {image.mode}")
            converted = image.convert("L" if grey else "RGB")
            array = np.asarray(converted.resize((size, size), Image.Resampling.BILINEAR))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{file} cannot be read as an 8-bit image ({error}); convert or remove it") from error
    return np.atleast_3d(array).transpose(2, 0, 1)
