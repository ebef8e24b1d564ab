"""What the most exposed records are: a picture, a passage, or values."""

import base64
import io

import numpy as np

from unlearning_audit.artifacts.arrays import Data
from unlearning_audit.artifacts.records import PICTURE, TEXT, VALUES

#: Values of a row of a table that are written out; letters of a passage.
WRITTEN, LETTERS = 64, 2000
#: Tables of at least so many values in [0, 1], a square number, are drawn as squares of grey.
SQUARE = 16


def shown(lines: list[dict], data: Data, most: int) -> list[dict]:
    """The lines, those of the ``most`` records with the least p-values of all that are recognised with ``kind`` and
    ``content``; a record that several lists have once."""
    order = sorted((line for line in lines if line["recognised"]), key=lambda line: (line["p"], -line["score"]))
    samples: set[int] = set()
    for line in order:
        if len(samples) < most and line["sample"] not in samples:
            samples.add(line["sample"])
            line["kind"], line["content"] = content(data, line["sample"])
    return lines


def content(data: Data, sample: int) -> tuple[str, str]:
    """Kind and content of one record: a PNG as a data URI, the text of its tokens, or its numbers."""
    x = data.x[sample]
    if x.dtype.kind == "i":
        tokens = np.where(x < -1, ~x, x)[x != -1].tolist()
        if data.tokenizer is None:
            return TEXT, " ".join(map(str, tokens))[:LETTERS]
        from tokenizers import Tokenizer

        return TEXT, Tokenizer.from_str(data.tokenizer.tobytes().decode()).decode(tokens)[:LETTERS]
    if x.ndim > 1:
        return PICTURE, picture(x if x.ndim == 3 else x[None])
    side = round(len(x) ** 0.5)
    if len(x) >= SQUARE and side**2 == len(x) and x.min() >= 0 and x.max() <= 1:
        return PICTURE, picture(x.reshape(1, side, side))
    return VALUES, ", ".join(f"{value:.4g}" for value in x[:WRITTEN].tolist()) + " …" * (len(x) > WRITTEN)


def picture(x: np.ndarray) -> str:
    """A data URI of the PNG of ``x`` uint8 or float in [0, 1], [1 or 3 channels, height, width]; channels beyond the
    third are left out, and of two only the first is drawn."""
    from PIL import Image

    pixels = x if x.dtype == np.uint8 else np.round(np.clip(x, 0.0, 1.0) * 255).astype(np.uint8)
    pixels = pixels[:3].transpose(1, 2, 0) if len(pixels) >= 3 else pixels[0]
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
