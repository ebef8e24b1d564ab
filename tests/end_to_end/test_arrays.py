"""Arrays in memory are audited as the protocol external audits files: same numbers, same page, same sentences."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import audit
from unlearning_audit.evaluation.measuring import measure
from unlearning_audit.evaluation.opening import evaluation_of
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from external_cases import answers, memberships

RNG = np.random.default_rng(0)
LABELS = RNG.integers(4, size=300)
TRAIN, FORGET = memberships(RNG, samples=300, pairs=2)
#: Forgotten samples are answered as never seen ones by retrained models, surer by the audited, surest before.
MODELS = {
    name: answers(RNG, LABELS, TRAIN & ~FORGET if name == "retrain" else TRAIN, FORGET, memory=2, trace=trace)
    for name, trace in {"target": 1.0, "original": 3.0, "retrain": 0.0, "shadow": 1.0, "shadow_original": 3.0}.items()
}
TARGET, RETRAIN = MODELS["target"], MODELS["retrain"]
MASKS = {"labels": LABELS, "forget": FORGET, "train": TRAIN}
QUICK = {"bootstrap": 100, "progress": False}


@pytest.fixture(scope="module")
def whole_audit():
    return audit(**MODELS, **MASKS, attacks=["confidence", "random"], **QUICK)


def test_neither_snakemake_nor_torch_is_imported(tmp_path):
    """In a process of its own, because other tests import both."""
    np.savez(tmp_path / "arrays.npz", target=TARGET, **MASKS)
    program = (
        "import sys\nimport numpy as np\nfrom unlearning_audit import audit\n"
        "result = audit(**np.load('arrays.npz'), attacks=['random'], bootstrap=100, folder='.', progress=False)\n"
        "assert len(result.metrics) and result.report('page.html').stat().st_size\n"
        "assert not {'snakemake', 'torch', 'transformers'} & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_arrays_become_frames_and_a_page(whole_audit, tmp_path):
    rows = whole_audit.metrics.query("metric == 'q' and attack == 'extended' and role == '' and pair.isna()")
    q = dict(zip(rows["method"], rows["value"], strict=True))
    assert q["none"] < q["mine"] < q["retrain"]
    verdicts = whole_audit.verdicts.set_index("method")["verdict"]
    assert set(verdicts.index) == {"none", "mine", "retrain"}
    assert verdicts["none"] == "distinguishable"
    page = whole_audit.report(tmp_path / "page.html")
    assert "mine" in page.read_text()
    assert whole_audit.failures == []
    assert not whole_audit.folder.is_relative_to(tmp_path)


def test_three_lines_compute_a_number_of_the_report_anew(whole_audit, monkeypatch):
    monkeypatch.chdir(whole_audit.folder)
    made = plan.make(reading.read(*reading.load(["audit.yaml"])))
    for case, node in zip(made.cases, made.nodes["metrics"].values(), strict=True):
        of_node = evaluation_of(node.settings, **node.inputs, scores=[node.outputs["scores"]])
        numbers = measure(of_node, {"accuracy": node.settings["metrics"]["accuracy"]})
        values = [row.value for row in numbers.rows if row.metric == "accuracy"]
        kept = whole_audit.metrics.query(f"method == '{case.method}' and metric == 'accuracy'")["value"]
        np.testing.assert_array_equal(values, kept)
        assert len(kept) > 3


def test_records_are_samples_as_attacks_score_them(whole_audit):
    records = whole_audit.records
    assert list(records) == ["method", "attack", "sample", "role", "models", "score", "called_member"]
    assert set(records["method"]) == {"none", "mine", "retrain"}
    of_none = records.query("method == 'none' and attack == 'confidence/trained'")
    counts = of_none.pivot(index="sample", columns="role", values="models").reindex(range(300)).fillna(0)
    np.testing.assert_array_equal(counts["forget"], FORGET.sum(axis=0))
    np.testing.assert_array_equal(counts["heldout"], (~TRAIN & TRAIN.any(axis=0)).sum(axis=0))
    means = of_none.groupby("role")["score"].mean()
    assert means["forget"] > means["heldout"]


def test_forgotten_samples_that_are_still_recognised_are_listed(whole_audit):
    lists = whole_audit.recognised
    share = lists.groupby("method")["recognised"].mean()
    assert set(share.index) == {"none", "mine", "retrain"}
    assert share["none"] > 0.5 > share["retrain"]
    assert (lists.query("method == 'none'").groupby(["pair", "split"]).size() == FORGET.sum(axis=1)[0]).all()
    assert FORGET[:, lists["sample"].astype(int)].any(axis=0).all()


def test_it_shows_itself_as_the_matrix_of_verdicts_and_draws_figures(whole_audit):
    for text in ("verdict", "distance", "none", "mine", "retrain", "traces remain"):
        assert text in repr(whole_audit)
        assert text in whole_audit._repr_html_()
    picture = whole_audit.figure("verdicts")
    assert picture._repr_svg_().lstrip().startswith("<?xml")
    assert picture._repr_png_()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="figure: there is no figure 'verdict', did you mean 'verdicts'"):
        whole_audit.figure("verdict")


def test_what_is_hard_to_believe_is_told_as_a_run_tells_it():
    """Retrained models whose samples are in another order, and audited ones of which one comes twice."""
    target = TARGET.copy()
    target[1] = target[0]
    with pytest.warns(UserWarning, match="^Doubted: retrain") as warned:
        result = audit(target=target, original=MODELS["original"], retrain=RETRAIN[:, ::-1], **MASKS,
                       attacks=["random"], **QUICK)  # fmt: skip
    (order,) = [line for line in result.doubts if "in another order than labels" in line]  # once for all methods
    assert order.startswith("retrain answers ")
    assert any(line.startswith("target holds models twice (model 1 is model 0, or nearly") for line in result.doubts)
    assert [f"Doubted: {line}" for line in result.doubts] == [str(warning.message) for warning in warned]
    assert all(f"Doubted: {line}" in repr(result) for line in result.doubts)
    assert "Doubted: retrain answers" in result._repr_html_()
    assert ".npy" not in "".join(result.doubts)
    assert result.failures == []


ARRAY = "target must be an array of logits [models, samples, classes], found"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": None}, "target: must be given"),
        ({"target": {"logits": TARGET}},
         f"{ARRAY} a dict; of a model's output, give only the logits"),
        ({"target": "unl.npy"}, f"{ARRAY} text; pass arrays, such as numpy.load(path)"),
        ({"target": TARGET.swapaxes(0, 1)},
         f"target: logits has shape [300, {len(TARGET)}, 4], but must be [models, samples, classes], and there are "
         "labels of 300 samples; give logits.swapaxes(0, 1)"),
        ({"labels": LABELS.astype(str)}, "numbers, found text; number the classes from 0, in the order of the logits'"),
        ({"labels": np.eye(4)[LABELS]}, "one-hot labels become whole numbers by labels.argmax(axis=1)"),
        ({"train": None}, "train: give this or heldout"),
        ({"retrain": RETRAIN[..., :3]}, "retrain has 3 classes, but target has 4; all need the same classes"),
        ({"retrain": {"logits": RETRAIN, "train": TRAIN[:3]}}, "retrain['train']: train has shape [3, 300]"),
        ({"shadow": {"logit": MODELS["shadow"]}}, "shadow: there is no array 'logit', did you mean 'logits'?"),
        ({"metrics": "accuracies"}, "metrics.accuracies: there is no metric 'accuracies', did you mean"),
        ({"method": "none"}, "the method 'none' has the models of "),
        ({"retrain_spread": {"auk": 0.1}}, "retrain_spread: there is no metric 'auk', did you mean 'auc'"),
    ],
)  # fmt: skip
def test_arrays_that_cannot_be_audited_are_refused_before_anything_runs(change, sentence, tmp_path):
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        audit(**{"target": TARGET, **MASKS, "folder": tmp_path} | change)
    assert not str(error.value).startswith("original"), "it is nobody's in particular"
    for word in ("file", "npy", "audit:", str(tmp_path)):
        assert word not in str(error.value), "nobody made a file"
    assert not (tmp_path / "results").exists()


HEAD = """from unlearning_audit import stats
from unlearning_audit.metrics import row
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    n: int = 1


"""


def test_a_metric_of_ones_own_stands_beside_the_others_and_an_attack_that_fails_is_told(workdir):
    Path("metric.py").write_text(
        f"{HEAD}def rows(evaluation, options, rng):\n    return [row(estimate=stats.empty(n=options.n, note='none'))]\n"
    )
    Path("attack.py").write_text(
        f"{HEAD}def score(logits, y, shadow, options, rng):\n    raise ArithmeticError('never')\n"
    )
    attacks = {"confidence": None, "fails": {"file": "attack.py"}}
    metrics = {"mine": {"file": "metric.py", "n": 7}, "accuracy": None}
    with pytest.warns(UserWarning, match="scenarios.audit.attacks.fails"):
        result = audit(target=TARGET, shadow=MODELS["shadow"], **MASKS, attacks=attacks, metrics=metrics, **QUICK)
    (failure,) = result.failures
    assert "attack.py line 11, in score: ArithmeticError: never" in failure
    assert result.metrics.query("attack == 'confidence/trained' and metric == 'auc'")["value"].notna().all()
    assert result.metrics.set_index("metric").loc["mine", "n"] == 7
    assert result.metrics["metric"].value_counts()["accuracy"] > 1


def test_a_known_spread_decides_on_one_retrained_model_and_calls_in_one_folder_are_kept_apart(tmp_path):
    models = {name: MODELS[name][:1] for name in ("target", "original", "retrain")}
    masks = {"labels": LABELS, "forget": FORGET[:1], "train": TRAIN[:1], "folder": tmp_path}
    for spread, verdict, said in (None, "cannot tell", "by chance if"), ({"auc": 0.001}, "traces remain", "given that"):
        line = audit(**models, **masks, attacks="confidence", retrain_spread=spread, **QUICK).matrix.loc["none"]
        assert line["verdict"] == verdict
        assert line["note"].startswith(said)


def test_two_groups_of_retrained_models_that_differ_are_told_once_for_both():
    sides = {"target": TARGET, "retrain": RETRAIN, "retrain_control": MODELS["shadow"]}
    lines = str(audit(**sides, **MASKS, **QUICK)).splitlines()
    assert "retrain, retrain_control: two groups of retrained models differ, so no method can be compared" in lines[-1]
