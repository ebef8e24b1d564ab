"""What is rebuilt if an option of a plug-in changes: one case for each kind of option, and every count of protocols."""

import numpy as np
import pytest
from unlearning_audit.plugins import registry

from external_cases import save
from plan_cases import BASE, changed, everything_from, only_of, planned, rebuilt


@pytest.fixture(autouse=True)
def own_files(workdir):
    """The working directory of a user who has data, logits and a method of their own, each in two places."""
    function = "def unlearn(model, retain_loader, forget_loader, **more):\n    return model\n"
    for prefix in ("own", "moved"):
        np.savez(f"{prefix}.npz", x=np.zeros((2, 2), np.float32), y=np.arange(2), part=np.zeros(2, int))
        (workdir / f"{prefix}.py").write_text(function)
        masks = {part: np.zeros(3, kind) for part, kind in (("labels", int), ("train", bool), ("forget", bool))}
        save(workdir / f"{prefix}_logits/target", logits=np.zeros((1, 3, 2)), **masks)


def study_of(protocol):
    """A study of this protocol, with what it allows."""
    if protocol == "external":
        defaults = {"protocol": {"name": protocol, "path": "own_logits"}, "attacks": {"random": {}}}
        return {**BASE, "defaults": {**defaults, "methods": {"finetune": {}}}, "tables": {}, "figures": {}}
    record = registry.protocol(protocol)
    study = changed(BASE, {"defaults/protocol": {"name": protocol}, "batch": 1})
    study = study if record.attacked else changed(study, {"defaults/attacks": {}, "tables": {}, "figures": {}})
    return study if record.forgets else changed(study, {"defaults/methods": {"none": {}}})


def of_swap(place, options):
    return changed(BASE, {f"defaults/{place}": options})


def test_an_attack_with_a_model_for_each_sample_is_refused_where_shadow_models_have_other_samples():
    with pytest.raises(ValueError, match=r"attacks\.lira: needs same_samples \(.*\), which the protocol swap"):
        planned(of_swap("attacks", {"lira": {}}))


#: A study, the path of an option, another value, and the first stage that is rebuilt or what is.
CASES = {
    "data": (BASE, "data/test_size", 150, "data"),
    "place of data": (of_swap("data", {"name": "arrays", "path": "own.npz"}), "data/path", "moved.npz", ""),
    "protocol": (BASE, "protocol/alpha", 0.2, "splits"),
    "place of logits": (study_of("external"), "protocol/path", "moved_logits", ""),
    "design": (study_of("external"), "protocol/design", "random", {"metrics", "comparisons"}),
    "model": (BASE, "model/hidden", [16], "train"),
    "method": (BASE, "methods/salun/lr", 0.3, "salun"),
    "function": (of_swap("methods/mine", {"file": "own.py", "options": {"lr": 0.1}}), "methods/mine/options/lr", 0.2,
                 "mine"),
    "attack": (of_swap("attacks", {"kde": {}}), "attacks/kde/bandwidth", 1.0, "metrics"),
    "metric": (of_swap("metrics/records", {"rate": 0.1}), "metrics/records/rate", 0.2, "metrics"),
    "metric that models are asked for": (of_swap("metrics/relearn", {"steps": 8}), "metrics/relearn/steps", 9,
                                         "signals"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_option_rebuilds_what_reads_it_and_nothing_else(name):
    study, field, value, expected = CASES[name]
    before, after = planned(study), planned(changed(study, {f"defaults/{field}": value}))
    changes = rebuilt(before, after)
    if isinstance(expected, set):
        assert set(changes) == expected
    elif expected in before.nodes:
        assert changes == everything_from(expected, before)
    else:
        assert changes == (only_of(expected, before) if expected else {})


COUNTS = [(name, field) for name in registry.names("protocols") for field in registry.protocol(name).counts]


@pytest.mark.parametrize(("name", "field"), COUNTS)
def test_a_count_of_a_protocol_adds_models_and_renames_none(name, field):
    default = registry.options("protocols", name).model_fields[field].default
    study = study_of(name)
    changes = rebuilt(planned(study), planned(changed(study, {f"defaults/protocol/{field}": default + 1})))
    assert all(changes[stage][0] == 0 for stage in ("splits", "train", "unlearn") if stage in changes)
    assert changes["splits"][2] > 0
    assert changes["metrics"][1] == 0


# ---------------------------------------------------------------- users' own files


#: Kind → where a study names a file of it, a file of the library, and what an edit of a copy of it rebuilds.
OWN = {
    "data": ("data", "digits", "data"), "models": ("model", "mlp", "train"),
    "protocols": ("protocol", "swap", "splits"), "methods": ("methods/mine", "finetune", ""),
    "attacks": ("attacks/mine", "loss", "metrics"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OWN)
def test_a_file_of_ones_own_is_known_by_its_code_not_by_its_place(workdir, kind):
    place, like, stage = OWN[kind]
    text = registry.source_file(kind, like).read_text()
    for name in ("mine.py", "elsewhere.py"):
        (workdir / name).write_text(text)
    study = changed(BASE, {f"defaults/{place}": {"name": "mine", "file": "mine.py"}})
    before = planned(study)
    assert rebuilt(before, planned(changed(study, {f"defaults/{place}/file": "elsewhere.py"}))) == {}
    expected = everything_from(stage, before) if stage else only_of("mine", before)
    for edit, changes in ((f"# a comment\n{text}", {}), (f"{text}\nADDED = 1\n", expected), (text, {})):
        (workdir / "mine.py").write_text(edit)
        assert rebuilt(before, planned(study)) == changes
