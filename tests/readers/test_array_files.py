"""Readers of arrays and frames: each on a small file in its true format, with numbers that are known."""

import re
import shutil

import numpy as np
import pandas
import pytest
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score
from unlearning_audit import command, readers, stats
from unlearning_audit.readers import _recompute, lira

import reader_cases as cases
from reader_cases import shape

RNG = np.random.default_rng
HALF = np.arange(8) < 4


@pytest.mark.parametrize("layout", ["a folder each", "models first", "augmented", "scores"])
def test_models_of_lira(tmp_path, layout):
    rng = RNG(3)
    y, keep = rng.integers(0, 5, 80), rng.random((6, 80)) < 0.5
    logits = rng.normal(size=(6, 80, 5))
    logits[:, np.arange(80), y] += 2 * keep
    expected = stats.phi(logits=logits, y=y)
    files = {"labels": y, "keep": keep}
    if layout == "a folder each":
        files = {"y_train": y} | {f"experiment-{i}_6/keep": row for i, row in enumerate(keep)}
        files |= {f"experiment-{i}_6/logits/0000000010": part[:, None, None] for i, part in enumerate(logits)}
    elif layout == "scores":
        files["scores/0"] = expected[:, :, None]
    else:
        files["logits"] = logits[:, :, None].repeat(3, axis=2) if layout == "augmented" else logits
    cases.save(tmp_path, **files)
    (group,) = readers.imported([tmp_path]).groups
    for model, row, phi in zip(group.none, keep, expected, strict=True):
        np.testing.assert_array_equal(model.forget, row)
        np.testing.assert_allclose(model.scores["confidence"], phi, rtol=1e-5)
    # Coins chose the samples, so an AUC above .5 is the models' own.
    assert readers.notes_on_retrained(group.none) == []


def test_the_likelihood_ratio_of_a_model_does_not_use_the_model_itself():
    """Where nothing was learned, a model in its own reference would be found, and must not be."""
    rng = RNG(2)
    keep = np.array([rng.permutation(np.arange(16) < 8) for _ in range(4000)]).T
    score = lira._likelihood_ratios(rng.normal(size=keep.shape), keep)
    values = [roc_auc_score(mask, row) for mask, row in zip(keep, score, strict=True)]
    assert abs(np.mean(values) - 0.5) < 0.005


def test_one_model_of_lira_whose_members_are_numbers(tmp_path):
    rng = RNG(3)
    keep = rng.random(80) < 0.5
    cases.save(tmp_path, labels=rng.integers(0, 5, 80), keep=np.flatnonzero(keep), logits=rng.normal(size=(80, 2, 5)))
    (group,) = readers.imported([tmp_path]).groups
    np.testing.assert_array_equal(group.none[0].forget, keep)


@pytest.mark.parametrize(
    ("name", "files", "sentence"),
    [
        ("", {"keep": np.zeros((2, 3, 4), bool)}, "keep.npy is here, but neither logits nor scores of the model"),
        ("", {"keep": HALF, "logits": np.zeros((8, 3))}, "there are logits, but no labels"),
        ("logits.npy", {"keep": HALF, "logits": np.zeros((8, 3)), "labels": np.full(8, 5)},
         "but there are 8 labels from 5 to 5"),
        ("s.npy", {"keep": HALF, "scores/s": np.zeros((9, 2))}, "which must be [samples]"),
        ("keep.npy", {"keep": np.array([3, 8]), "scores/s": np.zeros((8, 2))}, "or numbers of samples from 0 to 7"),
        ("keep.npy", {"keep": np.array([{}]), "scores/s": np.zeros((8, 2))}, "it holds pickled objects"),
        ("logits.npy", {"keep": HALF, "logits": np.full((8, 3), np.nan)}, "has values that are NaN"),
        ("id_0.npy", {"margins/id_0": np.zeros(4)}, "its folders must be margins/DATA/KIND"),
        ("a_signals.npy", {"a_signals": np.full((8, 2), 0.5)}, "memberships.npy is missing"),
    ],
)  # fmt: skip
def test_arrays_that_lack_something_are_named(tmp_path, name, files, sentence):
    cases.save(tmp_path, **files)
    with pytest.raises(ValueError, match=f"{re.escape(name)}: .*{re.escape(sentence)}"):
        readers.imported([tmp_path], alone=True)


def test_signals_of_privacy_meter(tmp_path):
    rng = RNG(3)
    member = rng.random((3, 100)) < 0.5
    likely = expit(rng.normal(0, 1, (100, 3)) + 2 * member.T)
    cases.save(tmp_path, memberships=member, **{"signals/a_signals": likely, "signals/a_signals_pop": likely[:5]})
    (group,) = readers.imported([tmp_path]).groups
    for model, row, column in zip(group.none, member, likely.T, strict=True):
        np.testing.assert_array_equal(model.forget, row)
        np.testing.assert_allclose(model.scores["confidence"], logit(column), rtol=1e-6)


def test_results_of_privacy_meter_are_recomputed(tmp_path):
    rng = RNG(4)
    member = rng.random(200) < 0.5
    score = rng.normal(size=200) + member
    true = roc_auc_score(member, score)
    for number, printed in enumerate((true, true + 0.01)):
        np.savez(tmp_path / f"attack_result_{number}", scores=score, memberships=member, auc=printed)
    assert [check.agrees for check in cases.checks(readers.imported([tmp_path]))] == [True, False]


# ---------------------------------------------------------------- EasyDUB


def test_margins_of_easydub(tmp_path):
    """The model before unlearning has margins of all training samples, from which the forget set is taken out."""
    rng = RNG(5)
    forget, retain, val = rng.normal(4, 1, 50), rng.normal(4, 1, 250), rng.normal(2, 1, 80)
    margins = {"pretrain/forget_2": forget, "pretrain/retain": np.insert(retain, 10, forget), "pretrain/val": val}
    parts = {"forget": forget - 2, "retain": retain, "val": val}
    margins |= {f"{kind}/forget_2/{part}": parts[part] for kind in ("oracle", "my_method") for part in parts}
    files = {f"margins/cifar10/{place}/resnet9/id_0_epoch_23": value for place, value in margins.items()}
    cases.save(tmp_path, **files, **{"forget_sets/cifar10/forget_set_2": np.arange(10, 60)})
    (group,) = readers.imported([tmp_path]).groups
    assert shape(group) == (1, 1, {"my_method": 1})
    for model, shift in zip(group.models, (0, 2, 2), strict=True):
        assert model.task == "forget_2"
        np.testing.assert_allclose(model.readings["retain_prob"].value, expit(retain))
        np.testing.assert_array_equal(model.scores["confidence"][model.forget], forget - shift)
        np.testing.assert_array_equal(model.scores["confidence"][model.heldout], val)


def test_epochs_of_easydub_are_a_trajectory_against_the_oracles_of_their_forget_set(tmp_path):
    """A printed KLOM that margins do not give is named."""
    path = cases.easydub(tmp_path) / "results/ns0.0_seed0.npz"
    imported = readers.imported([path.parent, tmp_path / "data"])
    (group,) = imported.groups
    assert (group.name, shape(group)[2]) == ("forget_2", {f"ns0_0_step{step}": 8 for step in (1, 2, 3)})
    with np.load(path) as content:
        margins = content["margins_forget"].astype(np.float64)
        np.savez(path, **{**content, "klom_p95_forget": content["klom_p95_forget"] + [0, 1e-3, 0]})
    for models, margin in zip(group.methods.values(), margins, strict=True):
        for model, values in zip(models, margin, strict=True):
            np.testing.assert_array_equal(model.scores["confidence"][model.forget], values)
            assert frozenset(model.ids) == frozenset(group.retrain[0].ids)
    assert [agreement.agrees for agreement in imported.agreements[path]] == [True] * 27
    wrong = [check.quantity for check in cases.checks(readers.imported([tmp_path])) if not check.agrees]
    assert wrong == ["klom_p95_forget of epoch 2"]
    study = readers.write(imported, tmp_path / "models", "margins")
    assert study["figures"]["trajectory_1"]["scenarios"] == [group.name]


def test_archives_of_one_forget_set_are_one_method_if_their_names_differ_by_a_seed_alone(tmp_path):
    """The folder of a forget set may have any spelling."""
    path, folder = cases.easydub(tmp_path, epochs=1) / "results/ns0.0_seed0.npz", tmp_path / "results/forget_set_02"
    (folder / "scrub").mkdir(parents=True)
    others = ("ga_lr1e-5", "ga_retain", "ga_step9", "ga_ft", "lora_rank8", "lora_rank16", "scrub/")
    counts = {"ga_lr1e-4": 2} | dict.fromkeys(others, 1)
    for name in (f"{method}_seed{seed}" for method, count in counts.items() for seed in range(count)):
        shutil.copy(path, folder / f"{name}.npz")
    imported = readers.imported([folder, tmp_path / "data"])
    (group,) = imported.groups
    assert shape(group)[2] == {
        f"{name.strip('/').replace('-', '_')}_step1": 8 * count for name, count in counts.items()
    }
    assert sum(map(len, imported.agreements.values())) == 9 * 9  # with the oracles of forget_2


def test_an_archive_that_fits_several_forget_sets_asks_for_its_own(tmp_path):
    path = cases.easydub(tmp_path, (1, 2)) / "results/ns0.0_seed0.npz"
    with np.load(path) as content:
        margins = {name: value for name, value in content.items() if name.startswith("margins")}
    path.unlink()
    shard = path.with_name("shard_0.npz")
    np.savez(shard, model_start=0, model_end=8, **margins)
    with pytest.raises(ValueError, match="fits forget_1, forget_2; put this file into a folder"):
        readers.imported([shard, tmp_path / "data"])
    assert [unread.file for unread in readers.imported([tmp_path]).unread] == [shard]  # of a folder it is left out
    archive = tmp_path / "results/my_method/forget_1/shard_0.npz"
    archive.parent.mkdir(parents=True)
    shard.rename(archive)
    assert [len(group.methods) for group in readers.imported([tmp_path]).groups] == [3, 0]
    for broken in (margins["margins_val"][:2], margins["margins_val"][:, :, :0]):
        np.savez(archive, **margins | {"margins_val": broken})
        with pytest.raises(ValueError, match=r"margins_val has shape .*, but must be .*, none of them 0, with equal"):
            readers.imported([archive])


# ---------------------------------------------------------------- PrivacyGuard


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_frames_of_privacyguard(tmp_path, suffix):
    scores = {name: RNG(9 + number).normal(size=50) for number, name in enumerate(("train", "test"))}
    for name, score in scores.items():
        frame = pandas.DataFrame({"user_id": np.arange(50), "score": score})
        path = tmp_path / f"df_{name}_user{suffix}"
        if suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=suffix == ".jsonl", double_precision=15)
    (group,) = readers.imported([tmp_path], alone=True).groups
    (model,) = group.none
    for mask, expected in ((model.forget, scores["train"]), (model.heldout, scores["test"])):
        np.testing.assert_allclose(model.scores["score"][mask], expected)


def test_a_table_that_says_sides_and_models_is_no_frame_of_privacyguard(tmp_path):
    parts = [cases.table(RNG(9), shift, kind=kind) for shift, kind in [(2, "full"), (0, "retrained"), (1, "unlearned")]]
    whole = pandas.concat(parts).rename(columns={"sample": "sample_id", "loss": "score"})
    for name, kinds in (("train", ["full"]), ("test", ["retrained", "unlearned"])):
        whole[whole["kind"].isin(kinds)].to_csv(tmp_path / f"scores_{name}.csv", index=False)
    imported = readers.imported([tmp_path])
    assert set(imported.formats.values()) == {"plain_csv"}
    assert shape(imported.groups[0])[:2] == (1, 1)


# ---------------------------------------------------------------- what they share


def test_a_reader_of_ones_own(tmp_path):
    """Its retrained model tells no side from the other, of which nothing is said."""
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from unlearning_audit.plugins.settings import Settings\n"
        "from unlearning_audit.readers import Model\n\n\n"
        "class Options(Settings):\n    pass\n\n\n"
        "def files(place):\n    return sorted(place.glob('*.mine'))\n\n\n"
        "def read(paths, options, root):\n"
        "    side, ids, x = np.arange(40) < 20, tuple(map(str, range(40))), np.arange(40) % 20\n"
        "    return [Model(f, f.stem, ids=ids, forget=side, heldout=~side, scores={'x': x}) for f in paths]\n"
    )
    for name in ("retrain", "none"):
        (tmp_path / f"{name}.mine").touch()
    (group,) = readers.imported([tmp_path], reader=str(tmp_path / "mine.py")).groups
    assert shape(group) == (1, 1, {})
    assert readers.notes_on_retrained(group.retrain) == []


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(ValueError, match="no results of a known format"):
        readers.imported([tmp_path])
    with pytest.raises(ValueError, match="no such file or folder"):
        readers.imported([tmp_path / "missing"])


def test_auc_and_formulas_against_libraries():
    rng = RNG(10)
    member, nonmember = rng.integers(0, 5, 30).astype(float), rng.integers(0, 4, 50).astype(float)
    true = roc_auc_score([1] * 30 + [0] * 50, [*member, *nonmember])
    assert _recompute.auc(member=member, nonmember=nonmember) == pytest.approx(true, abs=1e-12)
    assert _recompute.privacy_leakage(0.7, 0.7) == 0


# ---------------------------------------------------------------- bare logits


def run(words):
    """What the command ends with."""
    with pytest.raises(SystemExit) as ended:
        command.main(["read", *words.split(), "--only-write"])
    return str(ended.value.code)


@pytest.fixture
def logits(workdir):
    """Files of logits of 80 samples in the working directory."""
    arrays = {name: RNG(i).normal(size=(80, 5)) for i, name in enumerate("ab")}
    arrays |= {"r": RNG(2).normal(size=(3, 80, 5)), "y": np.arange(80) % 5, "h": np.arange(80) >= 50}
    cases.save(workdir, **arrays)
    return arrays


def test_bare_logits_become_a_study(logits, capsys):
    assert run("--target a.npy --target b.npy --retrain r.npy --labels y.npy") == "0"
    assert "80 samples to be forgotten, none held out" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load("read_models/target/logits.npy"), [logits["a"], logits["b"]])
    np.testing.assert_array_equal(np.load("read_models/retrain/logits.npy"), logits["r"])
    assert run("--target a.npy --retrain r.npy --labels y.npy --heldout h.npy") == "0"
    assert "50 samples to be forgotten, 30 held out" in capsys.readouterr().out
    masks = [np.load(f"read_models/{name}.npy") for name in ("forget", "heldout")]
    np.testing.assert_array_equal(masks, [~logits["h"], logits["h"]])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--target y.npy --retrain r.npy --labels y.npy", "but must be floating-point numbers"),
        ("--target a.npy --retrain r.npy", "--labels FILE"),
        ("--target a.npy --labels y.npy", "give --retrain FILE"),
        ("", "give result files or folders, or logits"),
    ],
)
def test_logits_that_lack_something_are_refused(logits, words, sentence):
    assert sentence in run(words)
