"""What the metrics declare, and what protocols bring along."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import TypeAdapter
from unlearning_audit.metrics import _text
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import OFFERS
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.report import naming

from snapshots import matches


def told(record):
    """What a record says beyond its defaults, its sentences aside."""
    said = ((f.name, getattr(record, f.name), f.default) for f in fields(record) if f.name != "reading")
    return " ".join(f"{name}={value!r}" for name, value, default in said if repr(value) != repr(default))


def test_declarations_are_those_written_down():
    """Quantities with their columns of the headline and comparisons, what decides, and metrics by protocol."""
    lines = [f"{name}: {told(quantity)}" for name, quantity in sorted(naming.quantities().items())]
    modules = {name: registry.load("metrics", name) for name in registry.names("metrics")} | {"_text": _text}
    for name, module in modules.items():
        lines += [f"{key} decides: {told(of)}" for key, of in getattr(module, "DECIDES", {}).items()]
        lines += [f"{name} accompanies: {told(module.UTILITY)}"] if hasattr(module, "UTILITY") else []
    brought = {name: registry.defaults(registry.protocol(name).offers) for name in registry.names("protocols")}
    lines += [f"{name} brings {' '.join(metrics)}" for name, metrics in brought.items()]
    matches(Path(__file__).parent / "expected" / "declarations.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("metric", "label"),
    [("lira_tpr_at_0.1pct_fpr", "TPR at 0.1 % FPR"), ("privacy_tpr_at_1pct_fpr", "privacy TPR at 1 % FPR"),
     ("privacy_tpr_at_1pct_fpr_over_population", "privacy TPR at 1 % FPR over population"),
     ("auc_min_k", "AUC of an attack"), ("no_quantity", "no quantity")],
)  # fmt: skip
def test_what_stands_for_a_star_in_a_name_stands_in_the_label(metric, label):
    assert (naming.meaning(metric).name, naming.meaning(metric).display_name) == (metric, label)


# ---------------------------------------------------------------- what protocols offer and metrics need


def test_every_offer_and_every_need_has_a_meaning():
    for name in registry.names("protocols"):
        assert set(registry.protocol(name).offers) <= set(OFFERS), name
    signals = set(registry.names("signals"))
    for name in registry.names("metrics"):
        assert set(registry.declared("metrics", name)) <= OFFERS.keys() | signals, name
        assert set(registry.declared("metrics", name, None, "DEFAULT")) <= set(registry.declared("metrics", name)) | {
            "canaries", "imported", "one_forget_set"
        }  # fmt: skip


def test_a_metric_is_possible_where_all_that_it_needs_is_offered():
    assert not registry.lacking(registry.protocol("swap").offers, "ruli_on_pairs")
    assert registry.lacking(registry.protocol("random_splits").offers, "ruli_on_pairs") == ("swapped_pairs",)
    assert registry.lacking(("forgotten",), "relearn") == ("weights",)
    assert registry.lacking(("imported",), "swap") == (), "it says in a row what a folder lacks"
    assert registry.lacking(("imported",), "kernel") == ("one_forget_set",)
    assert registry.lacking((), "privleak") == ("fair_draw",), "tokens are read from models, not offered"


@pytest.mark.parametrize("kind", ["protocols", "methods", "attacks", "metrics", "models", "data"])
def test_options_that_nobody_sets_lie_where_a_study_may_set_them(kind):
    for name in registry.names(kind):
        form = getattr(registry.load(kind, name), "Options", Settings)
        for field in (field for field in form.model_fields.values() if not field.is_required()):
            TypeAdapter(Annotated[field.annotation, field]).validate_python(field.get_default())
