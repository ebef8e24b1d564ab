"""What language models leave on disk follows the scored tokens, not the vocabulary."""

import numpy as np
import pytest
from unlearning_audit.data import _tokens
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.evaluation.readings import BySample
from unlearning_audit.training import tokens
from unlearning_audit.training.bank import Bank

from text_cases import LENGTH, VOCABULARY, tiny


def test_what_is_kept_follows_the_scored_tokens(tmp_path):
    """RULI's targets, the last seven of 128 tokens, take 7/127 of the disk that whole passages take: of 90 models on
    1,000 passages 183 MB, and 10 MB."""
    sizes = {}
    for scored in (None, 2):
        x = np.random.default_rng(0).integers(1, VOCABULARY, (40, LENGTH)).astype(np.int32)
        x = x if scored is None else _tokens.last_scored(x, scored)
        models = Bank.create(tiny, x, np.zeros(40, np.int64), [3, 4, 5], recipe=None)
        four = tokens.readings(models, np.arange(40))
        assert not np.isnan(four).any()
        data = models.logits(), np.arange(40), np.zeros(40, np.int64)
        Logits(*data).write(tmp_path / "logits.npz")
        BySample(np.array("tokens"), four, np.arange(40)).write(tmp_path / "readings.npz")
        sizes[scored or LENGTH - 1] = sum(path.stat().st_size for path in tmp_path.glob("*.npz"))
    values = 3 * 40 * 4 * 4  # models, samples, readings, bytes
    assert sizes[LENGTH - 1] - sizes[2] == pytest.approx(values * (LENGTH - 3), abs=100)
    rest = sizes[2] - values * 2
    assert 90 * 1000 * 127 * 16 + rest * (90 / 3) * (1000 / 40) <= 200e6
