"""MUSE's and RWKU's logs, records in JSON, and bare logits."""

import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from unlearning_audit import command, readers


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def muse(folder, rng, memory):
    """A log of MUSE, with the AUCs that its tool computes."""
    log = {}
    for split, shift in (("forget", memory), ("retain", 2.0), ("holdout", 0.0)):
        loss = rng.normal(3, 1, 30) - shift
        log[split] = [{"text": f"{split} {i}", "PPL": v, "Min-40%": 2 * v} for i, v in enumerate(loss)]
    sides = [[row["PPL"] for row in log[split]] for split in ("forget", "holdout")]
    auc = mannwhitneyu(*sides).statistic / 900  # that a forgotten text has the larger loss
    write(folder / "privleak/log.json", log)
    write(folder / "privleak/auc.json", {"forget_holdout_PPL": auc})
    for name in ("verbmem_f", "knowmem_f", "knowmem_r"):
        rows = [{"prompt": f"{i}", "gt": "", "response": "", "rougeL": rng.uniform()} for i in range(20)]
        write(folder / name / "log.json", rows)
        write(folder / name / "agg.json", {"mean_rougeL": np.mean([row["rougeL"] for row in rows]), "max_rougeL": 1})
    return 1 - auc


def test_logs_of_muse_are_read_and_give_the_auc_that_they_print(tmp_path):
    rng = np.random.default_rng(0)
    muse(tmp_path / "retrain", rng, 0)
    npo = muse(tmp_path / "npo", rng, 1)
    imported = readers.imported([tmp_path])
    (group,) = imported.groups
    (model,) = group.methods["npo"]
    ppl = next(check for check in model.agreements if check.quantity == "forget_holdout_PPL")
    assert ppl.agrees
    assert 1 - ppl.recomputed == pytest.approx(npo, abs=1e-12)
    assert (list(model.scores), model.forget.sum(), model.heldout.sum()) == (["ppl", "min_40"], 30, 30)
    assert len(model.samples["retain"]) == 30 + 20
    assert [model.readings[name].part for name in ("verbmem_f", "knowmem_f", "knowmem_r")] == ["forget"] * 2 + [
        "retain"
    ]
    assert len(model.agreements) == 5
    assert all(check.agrees for check in model.agreements if "Min" not in check.quantity)


def rwku(folder, rng, memory):
    """Logs of RWKU of one target."""
    for name, shift in (("forget_mia", memory), ("retain_mia", 1.0)):
        loss = -np.abs(rng.normal(3, 1, 20)) + shift
        lists = {"loss": loss.tolist(), "mink++_0.2": (2 * loss).tolist()}
        write(folder / f"{name}.json", {"loss": loss.mean(), "mink20": 2 * loss.mean(), "results": lists})
    answers = [
        {"query": f"{level} {i}", "level": level, "answer": "The Dark Tower", "prediction": said}
        for level in "123" for i, said in enumerate(["The Tower.", "Dark The Tower Dark", "NOANSWER", "the Tower"])
    ]  # fmt: skip
    recall = (2 / 3 + 2 / 3 + 0 + 1 / 3) / 4  # "The Tower", "Dark Tower" or "The Tower", nothing, "Tower"
    means = {f"level_{level}_rouge_l_r": recall for level in "123"}
    write(folder / "forget.json", means | {"results": answers})
    write(folder / "neighbor.json", means | {"results": answers[:8]})


def test_lists_of_rwku_are_read_for_each_target(tmp_path):
    rng = np.random.default_rng(1)
    for target in ("1_Stephen_King", "2_Tom_Clancy"):
        rwku(tmp_path / f"runs/retrain/{target}", rng, 0)
        rwku(tmp_path / f"runs/ga_full/{target}", rng, 2)
    (tmp_path / "runs/ga_full").rename(tmp_path / "runs/ga")
    imported = readers.imported([tmp_path / "runs"])
    assert [(len(g.retrain), list(g.methods), len(g.samples)) for g in imported.groups] == [(1, ["ga"], 32)] * 2
    checks = [check for checks in imported.agreements.values() for check in checks]
    assert len(checks) == 16 + 20
    assert all(check.agrees for check in checks)
    (model,) = imported.groups[0].methods["ga"]
    probability = model.readings["forget_probability"].value
    assert probability == pytest.approx(np.exp(np.minimum(model.readings["forget_loss"].value, 0)))
    assert model.readings["forget_level_3"].value == pytest.approx([2 / 3, 2 / 3, 0, 1 / 3])


def test_records_without_sides_are_of_what_was_to_be_forgotten(tmp_path):
    rng = np.random.default_rng(2)
    for name in ("retrain", "npo"):
        rows = [{"img": i, "entropy": rng.uniform(0, 2), "confidence": rng.uniform()} for i in range(30)]
        write(tmp_path / f"{name}.json", {"values": rows})
    (group,) = readers.imported([tmp_path]).groups
    (model,) = group.methods["npo"]
    assert model.forget.all()
    assert model.readings["forget_confidence"].direction == -model.readings["forget_entropy"].direction == 1


def logits(rng, y, memory, models=1):
    value = rng.normal(size=(models, len(y), 5)).astype(np.float32)
    value[:, np.arange(len(y)), y] += 2 + memory
    return value


def run(*words):
    """What the command ends with."""
    with pytest.raises(SystemExit) as ended:
        command.main(["read", *words, "--only-write"])
    return str(ended.value.code)


def test_bare_logits_become_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    y = rng.integers(5, size=80)
    one, two, retrained = (logits(rng, y, *more) for more in ((1,), (1,), (0, 3)))
    for name, value in {"a": one[0], "b": two[0], "r": retrained, "y": y, "short": one[0, :70]}.items():
        np.save(f"{name}.npy", value)
    assert run("--target", "a.npy", "--target", "b.npy", "--retrain", "r.npy", "--labels", "y.npy") == "0"
    assert "80 samples to be forgotten, none held out" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load("read_models/target/logits.npy"), np.concatenate([one, two]))
    np.testing.assert_array_equal(np.load("read_models/retrain/logits.npy"), retrained)
    np.save("h.npy", np.arange(80) >= 50)
    words = ("--target", "a.npy", "--retrain", "r.npy", "--labels", "y.npy", "--heldout", "h.npy")
    assert run(*words) == "0"
    assert "50 samples to be forgotten, 30 held out" in capsys.readouterr().out
    for population in ("target", "retrain"):
        masks = [np.load(f"read_models/{population}/{name}.npy") for name in ("forget", "heldout")]
        np.testing.assert_array_equal(masks, [np.arange(80) < 50, np.arange(80) >= 50])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--target short.npy --retrain r.npy --labels y.npy", "another number of samples than the 80"),
        ("--target y.npy --retrain r.npy --labels y.npy", "but must be floating-point numbers"),
        ("--target a.npy --retrain r.npy", "--labels: the class of every sample"),
        ("--target a.npy --labels y.npy", "give --retrain FILE"),
        ("--target a.npy --retrain r.npy --labels y.npy --heldout h.npy", "must be true for the held-out ones of the"),
        ("", "give result files or folders, or logits"),
    ],
)
def test_logits_that_lack_something_are_refused(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    for name, value in {"a": np.ones((80, 5)), "r": np.ones((80, 5)), "short": np.ones((70, 5))}.items():
        np.save(f"{name}.npy", value)
    np.save("y.npy", np.zeros(80, int))
    np.save("h.npy", np.ones(80, bool))
    assert sentence in run(*words.split())
