"""Samples that occur more than once: counted when memberships are drawn, shown beside the controls."""

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.report.page import copies
from unlearning_audit.store.files import write_spec

import splits as stage


def place(folder, scenario, groups, *batches):
    """A place of an order, and the specs it names; ``batches``: (forgotten, kept, heldout copies) of each."""
    specs = [folder / scenario / str(number) / "spec.json" for number in range(len(batches))]
    for spec, (forgotten, retained, heldout) in zip(specs, batches, strict=True):
        counts = {"forgotten": forgotten, "forgotten_kept": retained, "forgotten_heldout": 0, "heldout": 2000,
                  "heldout_trained": heldout}  # fmt: skip
        write_spec(spec, {"copies": counts})
    data = folder / scenario / "data.json"
    write_spec(data, {"duplicates": {"groups": groups, "train_test_pairs": 1}})
    return {"scenario": scenario, "setting": "", "data": str(data), "splits": [str(spec) for spec in specs]}


def test_counts_of_all_batches_are_added(tmp_path):
    order = [place(tmp_path, "clean", 1200, (500, 3, 0), (500, 4, 0)), place(tmp_path, "none", 0, (10, 0, 0))]
    sheet = copies.sheet(copies.read(order))
    (line,) = sheet.lines
    assert line.label == "clean"
    assert [entry.text for entry in line.cells] == ["1,200", "1", "7 of 1,000", "0 of 1,000", "0 of 4,000"]
    assert [entry.tone for entry in line.cells] == ["", "", "bad", "good", "good"]


def test_the_stage_counts_what_a_comparison_of_all_pairs_counts(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(120, 1, 3, 3), dtype=np.uint8)
    x[60:90] = x[:30]
    y, part = rng.integers(3, size=120), (np.arange(120) >= 100).astype(np.uint8)
    paths = {name: str(tmp_path / f"{name}.npz") for name in ("data", "membership")}
    Data(x, y, part, y, np.arange(120), 3).write(paths["data"])
    options = {"alpha": 0.25, "pairs": 2, "models_per_split": 1}
    settings = {"protocol": "swap", "options": options, "blocks": [0, 1], "population": "pairs", "seed": 0}
    facts = stage.splits(**paths, settings=settings, place={"file": None, "where": "scenarios.main.protocol"})
    member = Membership.read(paths["membership"])
    equal = (x.reshape(120, 1, -1) == x.reshape(1, 120, -1)).all(2) & ~np.eye(120, dtype=bool)

    def copies_of(of, among):
        return sum(int((equal[of[m]][:, among[m]].any(1)).sum()) for m in range(len(member.seed)))

    assert facts["copies"] == {
        "forgotten": int(member.forget.sum()), "forgotten_kept": copies_of(member.forget, member.retain),
        "forgotten_heldout": copies_of(member.forget, member.heldout),
        "heldout": int(member.heldout.sum()), "heldout_trained": copies_of(member.heldout, member.train),
    }  # fmt: skip
    assert facts["copies"]["forgotten_kept"] > 0
