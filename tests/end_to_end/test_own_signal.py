"""A signal of one's own is one file: it is found by its name, models are asked, and an attack reads what they said."""

import csv

import numpy as np
import yaml
from unlearning_audit.evaluation.arrays import Logits
from unlearning_audit.store.files import read_arrays, read_json

SIGNAL = '"""The largest logit."""\n\n\ndef measure(network, x):\n    return network(x).max(dim=-1).values\n'
ATTACK = '''"""How sure a model is of any class."""

import numpy as np

NEEDS = "top_logit"


def score(logits, shadow, top_logit):
    """The signal itself; the threshold is learned from that of shadow models."""
    np.testing.assert_allclose(top_logit, logits.max(axis=-1), rtol=1e-5)
    return top_logit, top_logit >= np.nanmedian(shadow.top_logit)
'''


def test_a_signal_is_one_file(finished, tmp_path):
    place = finished.copy(tmp_path / "work")
    (place.folder / "top_logit.py").write_text(SIGNAL)
    (place.folder / "surest.py").write_text(ATTACK)
    tiny = yaml.safe_load((place.folder / "study.yaml").read_text())
    tiny["defaults"] |= {"methods": {"none": {}, "retrain": {}}, "attacks": {"surest": {"file": "surest.py"}}}
    place.write(tiny)
    ran = place.job_counts(place.run("--printshellcmds", "--until", "collect").stdout)
    assert not ran.keys() & {"data", "splits", "train", "unlearn"}
    kept = place.find("signals/*/signals.npz")
    assert len(kept) == ran["signals"] > 0
    for path in kept:
        (models,) = (file for file in read_json(path.with_name("spec.json"))["inputs"] if file.endswith("tensors"))
        logits, signal = Logits.read((place.folder / models).with_name("logits.npz")).logits, read_arrays(path)
        np.testing.assert_allclose(signal["values"], logits[:, signal["index"]].max(axis=-1), rtol=1e-5)
    with (place.folder / "results/tiny/metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "auc"]
    assert {"surest/trained", "surest/unlearned"} <= {row["attack"] for row in rows}

    (place.folder / "top_logit.py").write_text(SIGNAL.replace("network(x)", "network.nothing"))
    place.run("--until", "collect")
    sentence = "top_logit.py line 5, in measure: AttributeError"
    assert sentence in (place.folder / "results/tiny/metrics.csv").read_text()
