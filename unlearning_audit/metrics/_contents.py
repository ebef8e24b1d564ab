"""Contents of the most exposed records (a picture, a passage or values), and of never-seen records beside them."""

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unlearning_audit.evaluation.records import PICTURE, TEXT, TOKENS, VALUES
from unlearning_audit.evaluation.shadow import LOGP
from unlearning_audit.metrics import Data, Evaluation, _answers, _text

#: How many values of a row of a table are written out, and how many letters of a passage.
MOST_VALUES, LETTERS = 64, 2000
#: Rows of at least this many values in [0, 1] whose number is a square are drawn as grey pictures.
SQUARE = 16


@dataclass(frozen=True)
class Unseen:
    """The held-out samples of one split of a pair, of which one is shown beside each recognised record of its models.

    Parameters
    ----------
    samples
        int64 [held out]: the numbers of the samples.
    score
        float64 [held out]: how familiar the samples are to these models.
    """

    samples: np.ndarray
    score: np.ndarray

    def most_familiar(self, label: int, y: np.ndarray, used: set[int]) -> int | None:
        """Return the position of the most familiar sample that is not ``used``, of the same ``label`` if there is one;
        None if all are used.

        Parameters
        ----------
        y
            int [samples]: the labels of the data.
        """
        free = ~np.isin(self.samples, list(used))
        same = free & (y[self.samples] == label)
        candidates = np.flatnonzero(same if same.any() else free)
        return int(candidates[self.score[candidates].argmax()]) if len(candidates) else None


#: One forgotten record: its values by the columns of `evaluation.records`.
Line = dict[str, Any]

#: ((pair, split), sample) → −log p of each of the sample's scored tokens, float64 [tokens]; None if unknown.
Surprise = Callable[[tuple[int, int], int], np.ndarray | None]


def with_contents(
    lines: list[Line],
    data: Data,
    most: int,
    unseen: dict[tuple[int, int], Unseen] | None = None,
    surprise: Surprise = lambda place, sample: None,
) -> list[Line]:
    """Return the lines with ``kind`` and ``content`` added to the ``most`` recognised records with the least p-values,
    then a line for a never-seen record to show beside each of these records. The given lines are changed.

    A record that is recognised in several splits is shown once. The never-seen record beside it is the most familiar
    one of the same (pair, split) and, if there is one, of the same label. None is shown twice for one (pair, split);
    once all are shown, further recognised records stand alone.

    Parameters
    ----------
    unseen
        (pair, split) → its held-out samples; None: there are none to show.
    surprise
        Returns −log p of the tokens of a record, given its (pair, split) and its number; None if unknown.
    """
    recognised = [line for line in lines if line["recognised"]]
    shown: set[int] = set()
    used: dict[tuple[int, int], set[int]] = {}
    beside = []
    for line in sorted(recognised, key=lambda line: (line["p"], -line["score"])):
        if len(shown) == most or line["sample"] in shown:  # another split may have shown it
            continue
        shown.add(line["sample"])
        place = line["pair"], line["split"]
        line["kind"], line["content"] = content(data, line["sample"], surprise(place, line["sample"]))
        # A never-seen record beside it, if there is one left: ``heldout`` are the never-seen records of this split,
        # ``used_here`` those of them that are shown already.
        heldout, used_here = (unseen or {}).get(place), used.setdefault(place, set())
        position = None if heldout is None else heldout.most_familiar(line["label"], data.y, used_here)
        if heldout is not None and position is not None:
            sample = int(heldout.samples[position])
            used_here.add(sample)
            kind, text = content(data, sample, surprise(place, sample))
            common = {name: line[name] for name in ("pair", "split", "models", "attack", "rate", "yardstick")}
            beside.append({
                **common, "sample": sample, "row": int(data.index[sample]), "label": int(data.y[sample]),
                "score": float(heldout.score[position]), "recognised": 0, "kind": kind, "content": text,
                "beside": line["sample"],
            })  # fmt: skip
    return lines + beside


def surprise(evaluation: Evaluation) -> Surprise:
    """Return a function of (pair, split) and a sample, which returns −log p of each scored token of the sample, as the
    mean over the audited models of that split: float64 [scored tokens].

    The function returns None if no job computed the signal "tokens" of these models, or not for this sample.
    """
    outputs, member = evaluation.outputs(evaluation.unlearned_files), evaluation.membership

    def mean_surprise(place: tuple[int, int], sample: int) -> np.ndarray | None:
        """Return −log p of the scored tokens of ``sample``, as the mean over the audited models of the pair and split
        in ``place``: float64 [scored tokens], or None if it is unknown.

        It is read from ``outputs``, the files of the audited models, whose memberships are ``member``.
        """
        tokens = outputs.of_signal("tokens")
        if tokens is None or sample not in tokens.index:
            return None
        models = evaluation.target & (member.block == place[0]) & (member.split == place[1])  # place: (pair, split)
        signal = evaluation.signal("tokens", evaluation.unlearned_files, models, np.array([sample]))
        nats = -signal[:, 0, :, LOGP].mean(axis=0)
        return np.asarray(nats[~np.isnan(nats)])

    return mean_surprise


def content(data: Data, sample: int, surprise: np.ndarray | None = None) -> tuple[str, str]:
    """Return kind and content of one record, so that it can be shown: a PNG as a data URI, its text, or its numbers.

    Without a tokenizer, the text is the numbers of its tokens. Features that form a square with values from 0 to 1 are
    shown as a picture. Long texts and rows of numbers are cut.

    Parameters
    ----------
    surprise
        float64 [scored tokens]: −log p of each token, or None. If it is given, the content of a text is a JSON list of
        each token with its value.
    """
    x = data.x[sample]
    if x.dtype.kind == "i":
        x = x[~_text.padding(x)]
        ids = np.where(x < 0, ~x, x).tolist()  # ~id is a token that is read and not scored
        if data.tokenizer is None:
            return TEXT, " ".join(map(str, ids))[:LETTERS]
        tokenizer = _answers.tokenizer_of(data)
        if surprise is None:
            return TEXT, tokenizer.decode(ids)[:LETTERS]
        nats = np.full(len(x), np.nan)
        nats[1 + np.flatnonzero(x[1:] >= 0)] = surprise  # the first token is predicted from nothing
        return TOKENS, json.dumps(_tokens(tokenizer, ids, nats), ensure_ascii=False)
    if x.ndim > 1:
        return PICTURE, picture(x if x.ndim == 3 else x[None])
    side = round(len(x) ** 0.5)
    if len(x) >= SQUARE and side**2 == len(x) and x.min() >= 0 and x.max() <= 1:
        return PICTURE, picture(x.reshape(1, side, side))
    values = ", ".join(f"{value:.4g}" for value in x[:MOST_VALUES].tolist())
    return VALUES, f"{values} …" if len(x) > MOST_VALUES else values


def _tokens(tokenizer: Any, ids: list[int], nats: np.ndarray) -> list[tuple[str, float | None]]:
    """Return the text of each token of ``ids`` with its −log p from ``nats`` float64 [tokens], None where that is NaN;
    of the first `LETTERS` letters only.

    A character that consists of several tokens stands with the last of them, because the first ones alone are decoded
    as replacement characters. Tokens without text of their own, such as these first ones, are left out.
    """
    whole = tokenizer.decode(ids)[:LETTERS]
    # Where the text of each token ends, without a character that later tokens complete.
    ends = [len(tokenizer.decode(ids[: i + 1]).rstrip("\N{REPLACEMENT CHARACTER}")) for i in range(len(ids) - 1)]
    spans = zip([0, *ends], [*ends, len(whole)], nats, strict=True)
    texts = ((whole[start:end], value) for start, end, value in spans)
    return [(text, None if np.isnan(value) else round(float(value), 2)) for text, value in texts if text]


def picture(x: np.ndarray) -> str:
    """Return a data URI of the PNG of ``x`` uint8 or float in [0, 1], [1 or 3 channels, height, width].

    Channels beyond the third are left out; of two channels only the first is drawn.
    """
    from PIL import Image

    pixels = x if x.dtype == np.uint8 else np.round(np.clip(x, 0.0, 1.0) * 255).astype(np.uint8)
    # [height, width, 3], or [height, width] of the first channel
    pixels = pixels[:3].transpose(1, 2, 0) if len(pixels) >= 3 else pixels[0]
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
