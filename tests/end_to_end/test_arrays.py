"""Arrays in memory are audited as the protocol external audits files: same numbers, same page, same sentences."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import audit
from unlearning_audit.evaluation.measuring import measure
from unlearning_audit.evaluation.opening import case_of
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


@pytest.fixture(scope="module")
def whole_audit():
    return audit(**MODELS, labels=LABELS, forget=FORGET, train=TRAIN, attacks=["confidence", "random"], bootstrap=100)


def test_neither_snakemake_nor_torch_is_imported(tmp_path):
    """In a process of its own, because other tests import both."""
    np.savez(tmp_path / "arrays.npz", target=MODELS["target"], labels=LABELS, forget=FORGET, train=TRAIN)
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
        of_node = case_of(node.settings, **node.inputs, scores=[node.outputs["scores"]])
        numbers = measure(of_node, {"accuracy": node.settings["metrics"]["accuracy"]})
        values = [row.value for row in numbers.rows if row.metric == "accuracy"]
        kept = whole_audit.metrics.query(f"method == '{case.method}' and metric == 'accuracy'")["value"]
        np.testing.assert_array_equal(values, kept)
        assert len(kept) > 3


def test_records_are_samples_as_attacks_score_them(whole_audit):
    records = whole_audit.records
    assert list(records) == ["method", "attack", "sample", "role", "models", "score", "called_member"]
    assert set(records["method"]) == {"none", "mine", "retrain"}
    of_none = records.query("method == 'none' and attack == 'confidence/trained'").set_index(["sample", "role"])
    for sample in range(0, 300, 29):
        for role, mask in (("forget", FORGET), ("heldout", ~TRAIN)):
            count = int(mask[:, sample].sum())
            assert (sample, role) in of_none.index if count else (sample, role) not in of_none.index
            assert not count or of_none.loc[(sample, role), "models"] == count
    means = of_none.groupby("role")["score"].mean()
    assert means["forget"] > means["heldout"]


def test_forgotten_samples_that_are_still_recognised_are_listed(whole_audit):
    lists = whole_audit.recognised
    assert set(lists["method"]) == {"none", "mine", "retrain"}
    share = lists.groupby("method")["recognised"].mean()
    assert share["none"] > 0.5 > share["retrain"]
    assert (lists.query("method == 'none'").groupby(["pair", "split"]).size() == FORGET.sum(axis=1)[0]).all()
    assert FORGET[:, lists["sample"].astype(int)].any(axis=0).all()


def test_it_shows_itself_as_the_matrix_of_verdicts_and_draws_figures(whole_audit):
    output = repr(whole_audit)
    for text in ("verdict", "distance", "none", "mine", "retrain", "traces remain"):
        assert text in output
        assert text in whole_audit._repr_html_()
    assert "tmp" not in output
    picture = whole_audit.figure("verdicts")
    assert picture._repr_svg_().lstrip().startswith("<?xml")
    assert picture._repr_png_()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="figure: there is no figure 'verdict', did you mean 'verdicts'"):
        whole_audit.figure("verdict")


def test_an_attack_of_ones_own_that_fails_is_told_and_the_rest_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        '"""Mine."""\n\nfrom unlearning_audit.plugins.settings import Settings\n\n\n'
        'class Options(Settings):\n    """None."""\n\n\n'
        "def score(logits, y, reference, options, rng):\n    raise ArithmeticError('never')\n"
    )
    arguments = {"target": MODELS["target"], "labels": LABELS, "forget": FORGET, "train": TRAIN, "bootstrap": 100}
    with pytest.warns(UserWarning, match="scenarios.audit.attacks.mine"):
        result = audit(**arguments, shadow=MODELS["shadow"], attacks={"confidence": None, "mine": {"file": "mine.py"}})
    (failure,) = result.failures
    assert "mine.py line 11, in score: ArithmeticError: never" in failure
    assert result.metrics.query("attack == 'confidence/trained' and metric == 'auc'")["value"].notna().all()


@pytest.fixture(scope="module")
def doubted_audit():
    """Retrained models whose samples are in another order, and audited ones of which one comes twice."""
    target = MODELS["target"].copy()
    target[1] = target[0]
    arrays = {"target": target, "original": MODELS["original"], "retrain": MODELS["retrain"][:, ::-1]}
    masks = {"labels": LABELS, "forget": FORGET, "train": TRAIN}
    with pytest.warns(UserWarning, match="^Doubted: retrain") as warned:
        result = audit(**arrays, **masks, attacks=["random"], bootstrap=100, progress=False)
    return result, [str(warning.message) for warning in warned]


def test_what_is_hard_to_believe_is_told_as_a_run_tells_it(doubted_audit):
    result, warned = doubted_audit
    order = [line for line in result.doubts if "in another order than labels" in line]
    assert len(order) == 1, "once for all methods"
    assert order[0].startswith("retrain answers ")
    assert any(line.startswith("target holds models twice (model 1 is model 0, or nearly") for line in result.doubts)
    assert [f"Doubted: {line}" for line in result.doubts] == warned
    assert all(f"Doubted: {line}" in repr(result) for line in result.doubts)
    assert "Doubted: retrain answers" in result._repr_html_()
    assert ".npy" not in "".join(result.doubts)
    assert result.failures == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"forget": FORGET[:, :20]}, "forget has shape [8, 20], but must be [8, 300] or [300]"),
        ({"target": [[1.0], [1.0, 2.0]]}, "target must be an array of logits [models, samples, classes], found a list"),
        ({"labels": LABELS.astype(str)}, "numbers, found text; number the classes from 0, in the order of the logits'"),
        ({"target": np.array([[{}]])}, "classes], found a list of unequal parts or of other objects"),
        (
            {"target": {"logits": MODELS["target"]}},
            "target must be an array of logits [models, samples, classes], found a mapping; labels, forget, train, "
            "heldout and pair are arguments of their own",
        ),
        (
            {"target": "unl.pt"},
            "target must be an array of logits [models, samples, classes], found a path; pass the array, such as "
            "torch.load('unl.pt', weights_only=True)",
        ),
        ({"forget": FORGET[0].astype(int)}, "must be a mask of bool; if it holds 0 and 1, give forget.astype(bool)"),
        ({"forget": np.flatnonzero(FORGET[0])}, "a list of indices becomes one by mask[index] = True"),
        (
            {"labels": LABELS.astype(float)},
            "labels has dtype float64, but must be whole numbers; give labels.astype(int",
        ),
        ({"labels": np.eye(4)[LABELS]}, "whole numbers; one-hot labels become whole numbers by labels.argmax(axis=1)"),
        ({"retrain": MODELS["retrain"][..., :3]}, "retrain has 3 classes, but target has 4; all need the same classes"),
        ({"target": MODELS["target"][0]}, "for a single model give logits[None]"),
        ({"retrain": {"logits": MODELS["retrain"], "train": TRAIN[:3]}}, "retrain['train']: train has shape [3, 300]"),
        ({"attacks": ["confidense"]}, "did you mean 'confidence'?"),
        ({"shadow": {"logit": MODELS["shadow"]}}, "shadow: there is no array 'logit', did you mean 'logits'?"),
        ({"train": None}, "train: give this or heldout"),
        ({"labels": None, "retrain": MODELS["retrain"]}, "labels: must be given"),
        (
            {"target": np.where(np.arange(300)[:, None] < 2, np.nan, MODELS["target"])},
            "has values that are NaN or infinite for 2 samples (0, 1); leave these out of all arrays",
        ),
        ({"method": "none"}, "method: the name 'none' is reserved for the models before unlearning; give the audited"),
        ({"method": "My method"}, "method: must be lower-case letters, digits and underscores only, found 'My method'"),
        (
            {"target": MODELS["target"].swapaxes(0, 1)},
            f"target: logits has shape [300, {len(MODELS['target'])}, 4], but must be [models, samples, classes], and "
            "there are labels of 300 samples; give logits.swapaxes(0, 1)",
        ),
        ({"target": None}, "target: must be given"),
    ],
)
def test_arrays_that_cannot_be_audited_are_refused_before_anything_runs(change, sentence, tmp_path):
    arguments = {
        "target": MODELS["target"],
        "labels": LABELS,
        "forget": FORGET,
        "train": TRAIN,
        "folder": tmp_path,
    } | change
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the sentence is compared below)
        audit(**arguments)
    assert sentence in str(error.value)
    assert not str(error.value).startswith("original"), "it is nobody's in particular"
    for word in ("file", "npy", "audit:", str(tmp_path)):
        assert word not in str(error.value), "nobody made a file"
    assert not (tmp_path / "results").exists()


def test_a_method_that_diverged_is_damaged_beside_sound_models():
    """Two of its eight models say NaN of every sample; the others are compared as beside a sound method."""
    masks = {"labels": LABELS, "forget": FORGET, "train": TRAIN}
    others = {name: MODELS[name] for name in ("original", "retrain")}
    arguments = {**masks, **others, "attacks": "confidence", "bootstrap": 100, "progress": False}
    sound = audit(target=MODELS["target"], **arguments)
    with pytest.warns(UserWarning, match="2 of 8 models diverged, with NaN or infinite values of 300 of 300 samples"):
        diverged = audit(target=np.where(np.arange(8)[:, None, None] < 2, np.nan, MODELS["target"]), **arguments)
    words = diverged.verdicts.set_index("method")
    assert words["verdict"]["mine"] == "broken"
    assert "model damaged: 2 of 8 models diverged" in words["note"]["mine"]
    before = sound.verdicts.set_index("method")
    assert sorted(words.index) == sorted(before.index)
    for method in words.index.drop("mine"):
        assert words["distance"][method] == before["distance"][method]
        assert np.isfinite(words["distance"][method])


def test_metrics_are_chosen_beside_those_that_are_always_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        '"""Mine."""\n\nfrom unlearning_audit import stats\nfrom unlearning_audit.metrics import row\n'
        "from unlearning_audit.plugins.settings import Settings\n\n\n"
        'class Options(Settings):\n    """None."""\n\n    n: int = 1\n\n\n'
        "def rows(case, options, rng):\n    return [row(estimate=stats.empty(n=options.n, note='none'))]\n"
    )
    arguments = {"target": MODELS["target"], "labels": LABELS, "forget": FORGET, "train": TRAIN, "progress": False}
    chosen = {"mine": {"file": "mine.py", "n": 7}, "accuracy": None}
    result = audit(**arguments, attacks="random", metrics=chosen, bootstrap=100)
    assert result.metrics.set_index("metric").loc["mine", "n"] == 7
    assert result.metrics["metric"].value_counts()["accuracy"] > 1
    with pytest.raises(ValueError, match=r"^metrics\.accuracies: there is no metric 'accuracies', did you mean"):
        audit(**arguments, metrics="accuracies")


def test_a_folder_that_cannot_be_one_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("unl").touch()
    arguments = {"target": MODELS["target"], "labels": LABELS, "forget": FORGET, "train": TRAIN}
    with pytest.raises(ValueError, match=r"^folder: unl is a file; name a folder, which is made if it is missing$"):
        audit(**arguments, folder="unl")
    with pytest.raises(
        ValueError, match=r"^folder: unl/results cannot hold results \(Not a directory: .*unl.*\); name"
    ):
        audit(**arguments, folder=Path("unl/results"))


def test_a_known_spread_decides_on_one_retrained_model():
    models = {name: MODELS[name][:1] for name in ("target", "original", "retrain")}
    arguments = {"labels": LABELS, "forget": FORGET[:1], "train": TRAIN[:1], "attacks": "confidence", "bootstrap": 100}
    for spread, verdict, said in ((None, "cannot tell", "by chance if"), (0.001, "traces remain", "given that"),
                                  ({"auc": 0.001}, "traces remain", "given that")):  # fmt: skip
        result = audit(**models, **arguments, retrain_spread=spread, progress=False)
        line = result.matrix.loc["none"]
        assert line["verdict"] == verdict
        assert line["note"].startswith(said)
    with pytest.raises(ValueError, match="retrain_spread: there is no metric 'auk', did you mean 'auc'"):
        audit(**models, **arguments, retrain_spread={"auk": 0.1})
    with pytest.raises(ValueError, match=r"retrain_spread\.auc: .*-1"):
        audit(**models, **arguments, retrain_spread={"auc": -1})
