"""PrivacyGuard's frames: two tables with a column ``score`` and one of users, of training and of held-out samples.

Its attacks return two frames, in which a higher score is more like a member. Users save them as csv, json, json lines
or parquet; they are recognised by ``train`` and ``test`` (or ``holdout``) in their names. Frames with ``score_orig``
and ``score_mean`` of shadow models are inputs of its attacks: the score is then the difference of both.
"""

import re
from pathlib import Path

import numpy as np

from unlearning_audit.readers import _texts, _words
from unlearning_audit.readers._columns import DISTINGUISHING, layout_of
from unlearning_audit.readers._model import Model
from unlearning_audit.readers._tables import frame, header, numbers

_TRAIN = re.compile(r"(^|[_\-.])(hold_out_train|train|member|forget)([_\-.]|$)")
_TEST = re.compile(r"(^|[_\-.])(hold_out_test|test|holdout|heldout|eval|nonmember)([_\-.]|$)")
USERS = ("user_id", "separate_id", "sample_id", "id")


def files(place: Path) -> list[Path]:
    """Return the frames of PrivacyGuard at or below a path that belong to a pair: a frame of training samples and one
    of held-out samples."""
    frames = _texts.below(place if place.is_dir() else place.parent, ".csv", ".json", ".jsonl", ".parquet")
    pairs = [pair for path in frames if _TRAIN.search(path.stem) and (pair := _pair(path, frames))]
    paths = sorted({path for pair in pairs for path in pair})
    return paths if place.is_dir() else [path for path in paths if place in paths]


def _pair(train: Path, frames: list[Path]) -> tuple[Path, Path] | None:
    """Return the frame ``train`` of training samples, and the one of ``frames`` that has its held-out samples. It lies
    in the same folder, and its name differs only in the word that tells held-out from training samples. None if there
    is no such frame, or if one of the two frames lacks the columns of PrivacyGuard."""
    rest = _TRAIN.sub(r"\1*\3", train.stem)  # the name with "*" for the word that tells training from held-out samples
    beside = [path for path in frames if path.parent == train.parent and path.suffixes == train.suffixes]
    tests = [path for path in beside if path != train and _TEST.search(path.stem)]
    test = next((path for path in tests if _TEST.sub(r"\1*\3", path.stem) == rest), None)
    return (train, test) if test and all(_user_column(header(path)) for path in (train, test)) else None


def read(paths: list[Path], options: object, root: Path) -> list[Model]:
    """Return one model for each pair of frames, of training and of held-out samples; frames without a partner are
    skipped. Raises ValueError that names a file."""
    pairs = (_pair(train, paths) for train in paths if _TRAIN.search(train.stem))
    return [_model(*pair, root) for pair in pairs if pair]


def _user_column(names: list[str]) -> str:
    """Return the name of the column of users, among the ``names`` of a table's columns; "" if the table is not a frame
    of PrivacyGuard. Such a frame has scores, but no column of sides or models."""
    if {"side", *DISTINGUISHING} & set(layout_of(names, {}).columns) or not {"score", "score_orig"} & set(names):
        return ""
    return next((name for name in USERS if name in names), "")


def _model(train: Path, test: Path, root: Path) -> Model:
    """Read the model of a pair of frames: ``train`` has training samples, ``test`` held-out samples. A user is one
    sample.

    The score is the column "score". Without it, the score is "score_orig", less the shadow models' "score_mean" if
    there is such a column. Raises ValueError for scores that are not finite, and for a frame without rows.
    """
    ids, values = [], []
    for path in (train, test):
        table = frame(path)
        score = numbers(path, table["score" if "score" in table else "score_orig"])
        if "score" not in table and "score_mean" in table:
            score = score - numbers(path, table["score_mean"])
        if not np.isfinite(score).all() or not len(score):
            raise ValueError(f"{path}: column 'score' must hold at least one number, and only finite ones")
        # Of several rows of a user the largest score counts, as in PrivacyGuard's own analyses.
        users = table[_user_column(list(table))].astype(str)
        best = table.assign(best=score).groupby(users, sort=False)["best"].max()
        ids.append([f"{path.stem}:{name}" for name in best.index])
        values.append(best.to_numpy())
    model = _words.trained_model(train, root, scores={"score": np.concatenate(values)})
    model.divide(*ids)
    return model
