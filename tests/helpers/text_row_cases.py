"""Language models of two swapped pairs and a shadow model, and the rows that plain loops give."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.store.files import NoAnswerError

from passage_cases import two
from row_places import about

SAMPLES, ROWS, TOKENS = 12, 36, 5
#: A shadow model that forgets all, and two pairs of splits: what each model forgets its twin never saw.
FORGET = {1: (0, 1, 2), 2: (3, 4), 3: (5, 6), 4: (7, 8)}
TWIN = {1: 2, 2: 1, 3: 4, 4: 3}
PAIRS = {"": (1, 2, 3, 4), "pair=0": (1, 2), "pair=1": (3, 4)}
SETTINGS = {"metrics": {"privleak": {"share": 0.4}, "overlap": {"n": 2}}}


class Populations(SimpleNamespace):
    """What a metric reads of a case."""

    def signal(self, name, files, models, rows):
        return self.said[tuple(files)][models][:, rows]

    def outputs(self, files):
        if files == ["failed"]:
            raise NoAnswerError("it diverged")
        return SimpleNamespace(logits=self.logits[tuple(files)])

    @property
    def compared_files(self):
        return self.control_files if self.unlearned_files == self.retrained_files else self.retrained_files


def membership() -> Membership:
    forget, heldout = np.zeros((2, 5, ROWS), bool)
    forget[0, :SAMPLES] = True
    for model, samples in FORGET.items():
        forget[model, list(samples)] = heldout[TWIN[model], list(samples)] = True
    train = ~heldout & (np.arange(ROWS) < 10)
    train[0] |= forget[0]
    return Membership(
        train, forget, heldout, seed=np.arange(5), split=np.array([0, 0, 1, 0, 1]), block=np.array([0, 0, 0, 1, 1]),
        shadow=np.arange(5) == 0,
    )  # fmt: skip


def evaluation() -> Populations:
    """Samples 10 and 11 are the test part; rows 12 to 35 are two wrong answers of each, of which sample 1 has none and
    sample 3 only one."""
    rng, readings, logits = np.random.default_rng(5), {}, {}
    for name in ("own", "retrained", "control"):
        four = -rng.uniform(0.5, 3, (5, ROWS, TOKENS, 4))
        four[..., 3] = rng.integers(0, 2, (5, ROWS, TOKENS))
        readings[(name,)] = four
        logits[(name,)] = two(-rng.uniform(0.5, 3, (5, ROWS)))
    wrong = np.full((ROWS, 2), -1)
    wrong[:SAMPLES] = np.arange(SAMPLES, ROWS).reshape(SAMPLES, 2)
    wrong[1] = wrong[3, 1] = -1
    part = np.where(np.arange(ROWS) < 10, 0, np.where(np.arange(ROWS) < SAMPLES, 1, 2))
    x = rng.integers(0, 3, (ROWS, 6)).astype(np.int32)
    data = SimpleNamespace(
        part=part, y=np.zeros(ROWS, int), x=x, views=lambda kind: wrong if kind == "perturbed" else wrong[:, :0]
    )
    return Populations(
        membership=membership(), target=np.arange(5) > 0, data=data, unlearned=logits[("own",)],
        unlearned_files=["own"], retrained_files=["retrained"], control_files=["control"],
        said=readings, logits=logits,
    )  # fmt: skip


def by_name(rows) -> dict[tuple[str, str], dict]:
    table = {(row.metric, about(row)): row for row in rows}
    assert len(table) == len(rows)
    return table


def samples_of(evaluation, role: str, model: int) -> np.ndarray:
    member = evaluation.membership
    masks = {"forget": member.forget, "heldout": member.heldout, "retain": member.train & ~member.forget}
    return np.flatnonzero(evaluation.data.part == 1 if role == "test" else masks[role][model])


def check(evaluation, rows: dict, metric: str, value: np.ndarray, roles: tuple[str, ...]) -> None:
    """Every row of a metric is the mean over models of means of ``value`` [models, rows], NaN left out."""
    settings = {";".join(filter(None, (pair, f"role={role}"))): (pair, role) for pair in PAIRS for role in roles}
    assert {setting for name, setting in rows if name == metric} == set(settings)
    for setting, (pair, role) in settings.items():
        samples = {m: [i for i in samples_of(evaluation, role, m) if not np.isnan(value[m, i])] for m in PAIRS[pair]}
        row = rows[metric, setting]
        assert row.value == pytest.approx(np.mean([value[m, i].mean() for m, i in samples.items()]), abs=1e-9)
        assert row.n == len(set().union(*samples.values()))
        assert row.ci_low <= row.value <= row.ci_high
        assert row.ci_low < row.ci_high
        assert row.note == ""
