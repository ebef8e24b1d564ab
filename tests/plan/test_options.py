"""What is rebuilt if an option of a plug-in changes: every option of every file of the library."""

import numpy as np
import pytest
from unlearning_audit.plugins import registry
from unlearning_audit.study.schema import PLACES

from external_cases import save
from other_values import other_value
from plan_cases import BASE, changed, everything_from, only_of, planned, rebuilt

#: What a plug-in needs to be chosen at all.
NEEDED = {"competition.copies": {"originals": "many"},
          "arrays": {"path": "own.npz"}, "table": {"path": "own.csv", "label": "y"},
          "image_folder": {"path": "images"}, "classic": {"file": "classic.py"},
          "external": {"path": "logits"}, "hub": {"repository": "some/set", "text": "text"},
          "question_answer": {"path": "own.npz"},
          **{f"question_answer.{field}": {"repository": "some/set"}
             for field in ("subset", "revision", "train", "test")},
          **{f"passages.{field}": {"corpus": "hub", "repository": "some/set"}
             for field in ("subset", "revision", "split", "text")}}  # fmt: skip
#: Fields whose type does not tell what they accept.
KNOWN = {"depth": 56, "table.path": "moved.csv", "table.label": "b", "table.columns": ["a"], "table.categories": ["a"],
         "table.test": "part", "table.group": "part", "arrays.path": "moved.npz", "question_answer.path": "moved.npz",
         "image_folder.path": "moved", "file": "moved.py", "function": "other", "tokenizer": "own.npz",
         "external.path": "moved_logits", "schedule": "cosine", "classic.options": {"lr": 0.1},
         "classic.give": {"retain_loader": "train_loader"}, "classic.argv": ["--fast"]}  # fmt: skip
#: This method has a schedule of its own, and nothing else to choose.
FIXED = ("competition_second.schedule", "competition_second.milestones", "competition_second.lr_decay")
#: Two scenarios in one: see test_selection.py. Several fields at once: test_text.py. Another method: test_tune_plan.py.
ELSEWHERE = (
    "ruli.select_from", "sham.like", *(f"{name}.{field}" for name in ("swap", "random_splits", "one_run")
                          for field in ("memorised", "select_from")),
    "passages.path", "passages.repository", "hub.image", "question_answer.repository",
    *(f"{model}.{option}" for model in ("gpt2", "gpt_neox", "llama") for option in ("base", "adapter")),
)  # fmt: skip

UNLEARNING = changed(BASE, {"defaults/recipe/record_updates": True, "defaults/methods": {"none": {}}})
NO_ATTACK = {"defaults/attacks": {}, "tables": {}, "figures": {}}


def options_of(kind):
    """The first option of every plug-in; the others are a matrix, and slow."""
    cases = []
    for name in registry.names(kind):
        fields = [f for f in registry.options(kind, name).model_fields if f"{name}.{f}" not in (*FIXED, *ELSEWHERE)]
        cases += [pytest.param(name, field, id=f"{name}.{field}", marks=[pytest.mark.slow] * (field != fields[0]))
                  for field in fields]  # fmt: skip
    return cases


@pytest.fixture(autouse=True)
def own_files(workdir):
    """The working directory of a user who has data, logits and a method of their own, each in two places."""
    for prefix in ("own", "moved"):
        np.savez(f"{prefix}.npz", x=np.zeros((2, 2), np.float32), y=np.arange(2), part=np.zeros(2, int))
        (workdir / f"{prefix}.csv").write_text("a,b,part,y\n1,2,train,0\n3,4,test,1\n")
    function = "def unlearn(model, retain_loader, forget_loader, **more):\n    return model\nother = unlearn\n"
    for name in ("classic.py", "moved.py"):
        (workdir / name).write_text(function)
    for name in ("images", "moved"):
        (workdir / name).mkdir()
        (workdir / name / "one.png").write_bytes(b"x")
    for name in ("logits", "moved_logits"):
        masks = {part: np.zeros(3, kind) for part, kind in (("labels", int), ("train", bool), ("forget", bool))}
        save(workdir / name / "target", logits=np.zeros((1, 3, 2)), **masks)


def plans(kind, place, name, field, study=BASE):
    """The study with plug-in ``name`` at ``place``, before and after ``field`` has another value."""
    form = registry.options(kind, name)
    if kind in ("attacks", "metrics") and {*registry.declared(kind, name)} & {
        *registry.defining("signals", "OF_TEXTS")
    }:
        study = changed(study, {"defaults/model": {"name": "gpt2"}})
    base = dict(NEEDED.get(f"{name}.{field}") or NEEDED.get(name, {})) if kind != "metrics" else {}
    if field in ("milestones", "lr_decay") and "schedule" in form.model_fields:
        base |= {"schedule": "multistep", "milestones": [1]}
        base |= {epochs: 5 for epochs in ("epochs", "repair_epochs") if epochs in form.model_fields}
    value = KNOWN.get(f"{name}.{field}") or KNOWN.get(field) or other_value(form, base, field)
    study = changed(study, {place: {**({} if kind == "metrics" else {"name": name}), **base}})
    return planned(study), planned(changed(study, {f"{place}/{field}": value}))


@pytest.mark.parametrize(("name", "field"), options_of("data"))
def test_an_option_of_the_data_rebuilds_all_unless_it_only_says_where_they_lie(name, field):
    before, after = plans("data", "defaults/data", name, field)
    assert rebuilt(before, after) == ({} if field in PLACES else everything_from("data", before))


def study_of(protocol):
    """A study of this protocol, with what it allows."""
    if protocol == "external":
        defaults = {"protocol": {"name": protocol, "path": "logits"}, "attacks": {"random": {}}}
        return {**BASE, "defaults": {**defaults, "methods": {"finetune": {}}}, "tables": {}, "figures": {}}
    record = registry.protocol(protocol)
    study = changed(BASE, {"defaults/protocol": {"name": protocol}, "batch": 1})
    study = study if record.attacked else changed(study, NO_ATTACK)
    return study if record.forgets else changed(study, {"defaults/methods": {"none": {}}})


@pytest.mark.parametrize(("name", "field"), options_of("protocols"))
def test_an_option_of_the_protocol_redraws_all_splits_unless_it_only_counts_them(name, field):
    before, after = plans("protocols", "defaults/protocol", name, field, study_of(name))
    changes = rebuilt(before, after)
    if name == "external":
        # Where the logits lie is no part of what they are; how sides were drawn says what numbers mean.
        assert set(changes) == ({"metrics", "comparisons"} if field == "design" else set())
    elif field in registry.protocol(name).counts:
        assert all(changes[stage][0] == 0 for stage in ("splits", "train", "unlearn") if stage in changes)
        assert changes["splits"][2] > 0
        assert changes["metrics"][1] == 0
    elif field == "requests":
        # Models are trained once, and each method answers more than once.
        assert all(changes[stage][:2] == (len(before.nodes[stage]), 0) for stage in ("splits", "train", "unlearn"))
        assert changes["train"][2] == len(before.nodes["train"])
        assert changes["unlearn"][2] > len(before.nodes["unlearn"])
    else:
        assert changes == everything_from("splits", before)


@pytest.mark.parametrize(("name", "field"), options_of("models"))
def test_an_option_of_the_model_trains_again(name, field):
    before, after = plans("models", "defaults/model", name, field)
    assert rebuilt(before, after) == everything_from("train", before)


@pytest.mark.parametrize(("name", "field"), options_of("methods"))
def test_an_option_of_a_method_unlearns_and_scores_this_method_again(name, field):
    before, after = plans("methods", "defaults/methods/subject", name, field, UNLEARNING)
    # A function is called as the study calls it.
    assert rebuilt(before, after) == only_of("subject" if name == registry.adapter("methods") else name, before)


@pytest.mark.parametrize(("name", "field"), options_of("attacks"))
def test_an_option_of_an_attack_scores_again_and_trains_nothing(name, field):
    of_samples = "same_samples" in registry.declared("attacks", name)
    study = changed(study_of("external") if of_samples else BASE, {"defaults/attacks": {"random": {}}})
    before, after = plans("attacks", "defaults/attacks/subject", name, field, study)
    assert rebuilt(before, after) == everything_from("metrics", before)


@pytest.mark.parametrize(("name", "field"), options_of("metrics"))
def test_an_option_of_a_metric_measures_again_and_scores_nothing(name, field):
    protocols = sorted(registry.names("protocols"), key=lambda protocol: protocol == "external")
    offers = {protocol: registry.protocol(protocol).offers for protocol in protocols}
    fitting = [protocol for protocol in protocols if name in registry.defaults(offers[protocol])]
    fitting += [protocol for protocol in protocols if not registry.lacking(offers[protocol], name)]
    study = study_of(fitting[0]) if fitting else changed(study_of("swap"), {"defaults/protocol/requests": 3})
    study = changed(study, {"defaults/protocol/models_per_split": 4}) if name == "ruli_on_pairs" else study
    before, after = plans("metrics", f"defaults/metrics/{name}", name, field, study)
    changes = rebuilt(before, after)
    assert set(changes) <= {"signals", "metrics", "comparisons"}
    assert changes["metrics"] == everything_from("metrics", before)["metrics"]


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
