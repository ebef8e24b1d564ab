"""The study of vision transformers at small size: files as they are published, weights from a file, every table."""

import numpy as np
import pytest
import yaml
from PIL import Image
from unlearning_audit.evaluation.rows import read_union

from workplace import ROOT, Workplace

pytestmark = pytest.mark.slow

CLASSES, TRAIN, TEST = ("n01", "n02", "n03"), 40, 10
SIZES = {"depths": [1, 1, 1, 1], "heads": [1, 1, 1, 1], "width": 8, "image_size": 32}


def published(place) -> None:
    """Tiny-ImageNet's folders with three classes, told apart by their colour, in noise."""
    rng = np.random.default_rng(0)

    def save(path, label):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(
            rng.integers(100, size=(64, 64, 3), dtype=np.uint8) + 120 * np.eye(3, dtype=np.uint8)[label]
        ).save(path)

    for label, name in enumerate(CLASSES):
        for number in range(TRAIN):
            save(place / f"train/{name}/images/{name}_{number}.JPEG", label)
    lines = []
    for number in range(TEST * len(CLASSES)):
        label = number % len(CLASSES)
        save(place / f"val/images/val_{number}.JPEG", label)
        lines.append(f"val_{number}.JPEG\t{CLASSES[label]}\t0\t0\t62\t62\n")
    (place / "val/val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("\n".join(CLASSES))


def weights(path) -> None:
    """A checkpoint in torchvision's names, with a head of other classes."""
    import torch
    from safetensors.torch import save_file
    from unlearning_audit.models import swin_s

    torch.manual_seed(0)
    save_file(swin_s.build(swin_s.Options(**SIZES), (3, 64, 64), 1000).swin.state_dict(), path)


def test_the_study_runs_on_files_as_they_are_published(tree, tmp_path):
    place = Workplace(tree, tmp_path / "work")
    published(place.folder / "data/tiny-imagenet-200")
    weights(place.folder / "swin.safetensors")
    study = yaml.safe_load((ROOT / "studies/ruli_vit.yaml").read_text())
    study |= {"bootstrap": 100, "batch": 4}
    study["defaults"]["data"]["download"] = False
    study["defaults"]["model"] = {"name": "swin_s", "weights": "swin.safetensors", **SIZES}
    study["defaults"]["recipe"] |= {"lr": 0.003, "batch_size": 16}
    study["defaults"]["protocol"] |= {"target_size": 12, "shadow_blocks": 3}
    halves, canary = (study["scenarios"][name] for name in ("halves", "canary"))
    halves["protocol"]["pairs"] = 4
    halves["metrics"]["vulnerability"] = {"fpr": 0.2, "band": 0.3}
    canary["protocol"]["target_size"] = 12
    canary["recipe"] = {"precision": "float32"}  # half precision, as models of random halves train, takes four times
    study["scenarios"] = {"halves": halves, "canary": canary}
    del study["tables"]["rates"]  # its axis belongs to a scenario that is left out
    for wish in (*study["tables"].values(), *study["figures"].values()):
        wish["scenarios"] = ["canary"]
    place.write(study)
    place.run()
    tables = place.folder / "results/ruli_vit/tables"
    text = (tables / "table5.csv").read_text()
    assert all(method in text for method in ("none", "l1_sparse", "scrub"))
    assert "0.695" in text  # printed for scrub, canaries, by RULI; the table names what differs
    rows = read_union(place.folder / "results/ruli_vit/metrics.csv")
    key = ("canary", "none", "accuracy", (("role", "test"),))
    (accuracy,) = [r.row for r in rows if (r.scenario, r.method, r.row.metric, r.row.place) == key]
    assert accuracy.value > 0.8
