"""Small studies of which the data are there and nothing else, for tests of the forecast."""

from pathlib import Path

import numpy as np
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

import data as data_script


def planned(scenarios: dict, **defaults) -> plan.Plan:
    """The plan of a study on 200 training digits, or what ``defaults`` says; its data are written below here."""
    fields = {
        "data": {"name": "digits", "size": 200, "test_size": 50},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 2, "batch_size": 16},
        "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1},
        "methods": {"none": {}, "retrain": {}},
        "attacks": {"confidence": {}},
        "controls": False,
        **defaults,
    }
    whole = plan.make(reading.read({"study": "small", "batch": 2, "defaults": fields, "scenarios": scenarios}))
    for node in whole.nodes["data"].values():
        data_script.data(node.outputs["data"], node.settings, node.place)
    return whole


def images(path: Path, samples: int = 440) -> dict:
    """A data source: that many small pictures in four classes, a tenth of them for the test."""
    rng = np.random.default_rng(0)
    part = np.arange(samples) % 10 == 0
    x = rng.integers(0, 256, (samples, 3, 8, 8), dtype=np.uint8)
    np.savez(path, x=x, y=rng.integers(0, 4, samples), part=part)
    return {"name": "arrays", "path": str(path)}
