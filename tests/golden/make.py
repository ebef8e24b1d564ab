"""Make the kept inputs and the expected numbers anew, from the tree that this is run in.

    uv run python tests/golden/make.py                    # all studies, and arrays of models from elsewhere
    uv run python tests/golden/make.py thirds imported    # some of them
    uv run python tests/golden/make.py --logs field.tar.xz

To be run where numbers are meant to change, or a study was added.
"""

import sys
import tarfile
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import tree
from check import CACHE, EXPECTED, STUDIES, trained, write_tables

INPUTS = tree.GOLDEN / "inputs"

#: What is kept of published logs (MIT licence): models before unlearning, and retrained ones.
KEPT = (
    "tofu_Llama-3.2-1B-Instruct_full/evals_forget01/", "tofu_Llama-3.2-1B-Instruct_retain99/",
    "muse_Llama-2-7b-hf_News", "phi_full_wd0/", "phi_retain99_wd0",
)  # fmt: skip


def make(name: str) -> None:
    """Run a study from the first sample on; keep what its models leave, and the tables that came of it."""
    folder = CACHE / "made" / name
    tables = trained(tree.ROOT, STUDIES / f"{name}.yaml", folder)
    tables.pop("weights")
    with chdir(folder):
        np.savez_compressed(INPUTS / f"{name}.npz", **tree.keep(tree.planned(STUDIES / f"{name}.yaml")))
    write_tables(EXPECTED / name, tables)


def score(name: str) -> None:
    """Keep the tables of inputs that come without a study of ours."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_tables(EXPECTED / name, tree.score(name))


# ---------------------------------------------------------------- models from elsewhere


def imported() -> None:
    """Arrays as users bring them, of models of two studies."""
    thirds, swap = (np.load(INPUTS / f"{name}.npz") for name in ("thirds", "swap"))
    arrays = {}

    def put(place: str, source, splits: str, logits: str, models=slice(None)) -> None:
        stored = source[f"{logits}/logits"][models]
        values = np.empty_like(stored)
        values[:, source[f"{logits}/index"]] = stored
        arrays[f"arrays/{place}/logits"] = values
        for name in ("train", "forget", "heldout"):
            arrays[f"arrays/{place}/{name}"] = source[f"splits/{splits}/{name}"][models]

    def samples(place: str, source, data: str) -> None:
        arrays[f"arrays/{place}/labels"] = source[f"data/{data}/y"]
        arrays[f"arrays/{place}/test"] = source[f"data/{data}/part"] == 1

    data = next(name.split("/")[1] for name in thirds.files if name.startswith("data/"))
    samples("same_samples", thirds, data)
    for blocks, target, before in (("targets0to1", "target", "original"), ("shadows0to3", "shadow", "shadow_original")):
        splits, models = f"{data}-ruli-{blocks}", f"{data}-ruli-mlp-{blocks}"
        put(f"same_samples/{before}", thirds, splits, f"train/{models}")
        put(f"same_samples/neggrad_plus/{target}", thirds, splits, f"unlearn/{models}-neggrad_plus")
    put("same_samples/retrain", thirds, f"{data}-ruli-targets0to1", f"unlearn/{data}-ruli-mlp-targets0to1-retrain")
    data = next(name.split("/")[1] for name in swap.files if name.startswith("data/"))
    samples("one_against_three", swap, data)
    splits, models = f"{data}-swap-pairs0to1", f"{data}-swap-mlp-pairs0to1"
    alike = np.flatnonzero(~swap[f"splits/{splits}/shadow"] & (swap[f"splits/{splits}/split"] == 0))[:3]
    put("one_against_three/original", swap, splits, f"train/{models}", alike[:1])
    put("one_against_three/target", swap, splits, f"unlearn/{models}-neggrad", alike[:1])
    put("one_against_three/retrain", swap, splits, f"unlearn/{models}-retrain", alike)
    np.savez_compressed(INPUTS / "imported.npz", **arrays)
    score("imported")


# ---------------------------------------------------------------- logs


def logs(field: Path) -> None:
    """Files in the format of each reader: a part of the published logs in the archive ``field``, and what the tests of
    readers write."""
    sys.path[:0] = [str(tree.ROOT / folder) for folder in ("tests", "tests/helpers", "tests/readers")]
    import test_readers

    import reader_cases

    field = field.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with tarfile.open(field) as archive:
            for member in archive:
                if member.isfile() and any(part in member.name for part in KEPT):
                    member.name = member.name.replace("tofu_original/", "tofu/")
                    archive.extract(member, ".", filter="data")
        reader_cases.easydub(Path("easydub"), models=6, epochs=2)
        rng = np.random.default_rng(1)
        for name in ("lira", "privacy_meter/signals", "privacyguard", "plain_csv"):
            Path(name).mkdir(parents=True)
        test_readers.lira_worlds(Path("lira"), rng, samples=100)
        member = rng.random((3, 100)) < 0.5
        np.save("privacy_meter/memberships.npy", member)
        np.save("privacy_meter/signals/rmia_signals.npy", 1 / (1 + np.exp(-rng.normal(2 * member.T, 1))))
        for name, shift in (("train", 1.0), ("test", 0.0)):
            frame = pd.DataFrame({"user_id": np.arange(50), "score": rng.normal(shift, 1, 50)})
            frame.to_csv(f"privacyguard/df_{name}_user.csv", index=False)
        reader_cases.study_table().to_csv("plain_csv/losses.csv", index=False)
        names = sorted(path.name for path in Path().iterdir())
        with tarfile.open(INPUTS / "logs.tar.xz", "w:xz") as archive:
            for name in names:
                archive.add(name)
    for name in names:
        score(f"logs_{name}")


if __name__ == "__main__":
    INPUTS.mkdir(exist_ok=True)
    if sys.argv[1:2] == ["--logs"]:
        logs(Path(sys.argv[2]))
    else:
        studies = [path.stem for path in sorted(STUDIES.glob("*.yaml")) if path.stem != "imported"]
        for name in sys.argv[1:] or [*studies, "imported"]:
            imported() if name == "imported" else make(name)
