"""What the metrics declare: the headline from the left, and what perfect unlearning scores where they are compared."""

import math
from typing import Annotated

import pytest
from pydantic import TypeAdapter
from unlearning_audit.adversary.reference import SIGNALS
from unlearning_audit.display import naming
from unlearning_audit.metrics import _text
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import OFFERS
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import tail

#: Place, head and group of each column; "~": without intervals; "*": left out beside a Q of swapped pairs.
HEADLINE = """
1 Q
2 Q, cross-fitted
3 IC score
4 F / F₀ *
5 F *
6 final score *
7 privacy AUC *
8 efficacy AUC *
9 median efficacy *
10 right guesses *
10 p of one run ~ *
10 vulnerable ~
10 protected ~
11 MIA score ~
12 accuracy forget ~
13 accuracy heldout ~
14 accuracy retain ~
15 accuracy test ~
16 perplexity forget ~
17 perplexity heldout ~
18 perplexity retain ~
19 perplexity test ~
20 PrivLeak, %
21 Memorization
22 Utility
23 Privacy, 1 − d/|full − retrained|
24 Privacy, 1 − d/retrained
25 Privacy, 1 − d
26 Overall, 1 − d/|full − retrained|
27 Overall, 1 − d/retrained
28 Overall, 1 − d
"""
NO = math.nan
#: Place, name, what perfect unlearning scores, and which way: 1 more is better, −1 less, 0 only the distance counts.
COMPARED = [
    (1, "Q", 1, 1), (2, "Q, extended", 1, 1), (3, "Q, cross-fitted", 1, 1), (4, "MIA score", 0.5, 0),
    (5, "F / F₀", 1, 1), (6, "final score", NO, 1), (7, "efficacy", NO, -1), (8, "RULI privacy AUC", 0.5, 0),
    (9, "RULI efficacy AUC", 0.5, 0), (10, "U-LiRA AUC", 0.5, 0), (11, "population AUC", 0.5, 0),
    (11, "one-run guesses", 0.5, 0), (12, "accuracy gap", 0, 0), (13, "IC score", 1, 1), (13, "relearning", 0, 0),
    (30, "NLL gap", 0, 0), (31, "PrivLeak", 0, 0), (32, "memorisation gap", 0, 0), (36, "truth ratio KS", NO, -1),
    (37, "ROUGE gap", 0, 0), (38, "choice gap", 0, 0),
]  # fmt: skip


def test_the_headline_from_the_left():
    columns = [
        " ".join(filter(None, (str(c.place), c.group, c.head, "" if c.interval else "~", "*" if c.besides else "")))
        for _, c in naming.columns()
    ]
    assert sorted(columns) == sorted(HEADLINE.strip().splitlines())
    assert [int(line.split()[0]) for line in columns] == sorted(int(line.split()[0]) for line in columns)


@pytest.mark.parametrize(
    ("metric", "label"),
    [("lira_tpr_at_0.1pct_fpr", "TPR at 0.1 % FPR"), ("privacy_tpr_at_1pct_fpr", "privacy TPR at 1 % FPR"),
     ("privacy_tpr_at_1pct_fpr_over_population", "privacy TPR at 1 % FPR over population"),
     ("auc_min_k", "AUC of an attack"), ("no_quantity", "no quantity")],
)  # fmt: skip
def test_what_stands_for_a_star_in_a_name_stands_in_the_label(metric, label):
    assert (naming.meaning(metric).name, naming.meaning(metric).display_name) == (metric, label)


def test_what_perfect_unlearning_scores_where_metrics_are_compared():
    actual = [
        (c.place, c.name, c.ideal, 0 if c.two_sided else -1 if c.falling else 1)
        for quantity in naming.quantities().values()
        for c in quantity.comparisons
    ]
    expected = [(place, name, str(float(ideal)), way) for place, name, ideal, way in COMPARED]
    assert sorted((place, name, str(ideal), way) for place, name, ideal, way in actual) == sorted(expected)


def test_those_that_read_retrained_models_and_shadow_models_are_charged_for_them():
    both = [(c.name, c.retrained, c.shadows) for quantity in naming.quantities().values() for c in quantity.comparisons]
    assert sorted(name for name, retrained, _ in both if retrained) == [
        "F / F₀", "NLL gap", "PrivLeak", "ROUGE gap", "RULI efficacy AUC", "accuracy gap", "choice gap", "final score",
        "memorisation gap", "relearning", "truth ratio KS",
    ]  # fmt: skip
    paired = ("swap", "random_splits")
    assert {name: shadows for name, _, shadows in both if shadows} == {
        **dict.fromkeys(("Q", "Q, extended", "Q, cross-fitted"), paired),
        **dict.fromkeys(("RULI privacy AUC", "RULI efficacy AUC", "U-LiRA AUC", "population AUC"), ("ruli",)),
    }


def test_what_speaks_for_its_system_and_what_spans_orders_of_magnitude():
    assert naming.primary() == [
        "q", "ic_score", "forgetting_quality_over_null", "privacy_auc", "efficacy_median", "right_guesses"
    ]  # fmt: skip
    assert [name for name, quantity in naming.quantities().items() if quantity.logarithmic] == [
        "efficacy_median", "efficacy", "efficacy_upper_bound", "efficacy_upper_bound_median", "information",
        "attack_probability", "kernel_p", "kernel_nearer_p", "one_run_p", "one_run_e", "forget_quality",
    ]  # fmt: skip


def test_what_retraining_reads_by_theory():
    assert {name: entry.ideal for name, entry in naming.quantities().items() if not math.isnan(entry.ideal)} == {
        **dict.fromkeys(("q", "q_crossfit", "forgetting_quality_over_null", "relearn_steps", "printed_numbers"), 1),
        "kernel_nearer": 1,
        **dict.fromkeys(("privacy_auc", "efficacy_auc", "right_guesses"), 0.5),
        **dict.fromkeys(
            (
                "accuracy_gap", "exact_memorisation_gap", "extraction_strength_gap", "choice_gap", "epsilon_request",
                "epsilon_record", "nll_gap", "privleak", "relearn_area", "relearn_area_phi", "relearn_area_nll",
                "rouge_gap", "epsilon_replace", "records_recognised", "tail_advantage", "people_recognised",
                "retained_risk", "retained_risk_gap", "quantised_gap", "quantised_return", "leak_at_k_gap",
                "whole_at_k_gap", "rouge_at_k_gap", "leaked_at_k_gap", "cka_gap",
                "gibberish_gap",
            ),
            0,
        ),
    }  # fmt: skip


def test_what_numbers_of_verdicts_are_held_against():
    """Ideal, on which side doing nothing lies, margin, scale; and what is said of few of them."""
    metrics = {name: registry.load("metrics", name) for name in registry.names("metrics")}
    judging = {name: metric for name, metric in metrics.items() if name != "published"}
    decides = {
        name: standard for metric in judging.values() for name, standard in getattr(metric, "DECIDES", {}).items()
    }
    assert all(math.isnan(standard.ideal) for standard in metrics["published"].DECIDES.values())
    worth = {name: metric.WORTH for name, metric in metrics.items() if hasattr(metric, "WORTH")}
    worth["_text"] = _text.WORTH
    actual = {
        name: (str(standard.ideal), standard.near, standard.margin, standard.scale)
        for name, standard in {**decides, **worth}.items()
    }
    assert actual == {
        "advantage": ("0.0", 1, "advantage", "difference"),
        "tail_advantage": ("0.0", 1, "tail", "difference"),
        **dict.fromkeys(("auc", "right_guesses"), ("0.5", 1, "auc", "difference")),
        "klom": ("0.0", 1, "klom", "difference"),
        "forgotten_phi": ("nan", 1, "0.2", "difference"),
        "privacy_auc": ("0.5", 1, "auc", "difference"),
        "efficacy_auc": ("0.5", 1, "auc", "difference"),
        "forgetting_quality_over_null": ("1.0", -1, "forgetting_quality", "ratio"),
        "ic_score": ("nan", -1, "ic_score", "difference"),
        "efficacy": ("nan", 1, "efficacy", "log"),
        **dict.fromkeys(("relearn_area", "quantised"), ("nan", 1, "accuracy", "difference")),
        **dict.fromkeys(
            ("exact_memorisation", "choice_accuracy", "rouge_recall", "leak_at_k", "rouge_at_k"),
            ("nan", 1, "accuracy", "difference"),
        ),
        "min_k_auc": ("nan", 1, "auc", "difference"),
        "truth_ratio_probability": ("nan", 1, "accuracy", "difference"),
        **dict.fromkeys(("accuracy", "utility", "published"), ("nan", -1, "accuracy", "difference")),
        "_text": ("nan", 1, "perplexity", "log"),
    }
    assert all(standard.deciding for standard in decides.values())
    assert not any(standard.deciding for standard in worth.values())
    assert [name for name, standard in decides.items() if not standard.narrows] == ["forgetting_quality_over_null"]
    assert [name for name, standard in decides.items() if not standard.far] == [
        "forgetting_quality_over_null",
        "klom",
        "tail_advantage",
    ]


def test_between_what_numbers_of_verdicts_lie():
    """Areas, shares and scores of confusion between 0 and 1, differences of two rates between −1 and 1, and a tail's
    above what chance alone puts there; nothing else ends."""
    metrics = [registry.load("metrics", name) for name in registry.names("metrics")]
    standards = [standard for metric in metrics for standard in getattr(metric, "DECIDES", {}).values()]
    standards += [metric.WORTH for metric in metrics if hasattr(metric, "WORTH")]
    share, endless = (0.0, 1.0), (-math.inf, math.inf)
    ends = {
        **dict.fromkeys(("auc", "accuracy", "ic_score"), share),
        "advantage": (-1.0, 1.0), "tail": (-tail.SHARE, 1.0),
        **dict.fromkeys(("klom", "efficacy", "forgetting_quality", "perplexity", "0.2"), endless),
    }  # fmt: skip
    actual = {(standard.margin, standard.lowest, standard.highest) for standard in [*standards, _text.WORTH]}
    assert actual == {(margin, *limits) for margin, limits in ends.items()}


# ---------------------------------------------------------------- what protocols offer and metrics need


def test_every_offer_and_every_need_has_a_meaning():
    for name in registry.names("protocols"):
        assert set(registry.protocol(name).offers) <= set(OFFERS), name
    readings = {*SIGNALS, "features", "generations", "sampled", "relearned"}
    for name in registry.names("metrics"):
        assert set(registry.declared("metrics", name)) <= OFFERS.keys() | readings, name
        assert set(registry.declared("metrics", name, None, "DEFAULT")) <= set(registry.declared("metrics", name)) | {
            "canaries", "imported"
        }  # fmt: skip


def test_offers_bring_metrics_along():
    brought = {name: registry.defaults(registry.protocol(name).offers) for name in registry.names("protocols")}
    assert brought == {
        "competition": ("competition", "records_by_retraining", "accuracy"),
        "efficacy": ("efficacy", "accuracy"),
        "external": (
            "accuracy", "blind", "competition", "forgotten_phi", "one_run", "phi", "published", "records",
            "ruli", "swap", "texts",
        ),
        "interclass_confusion": ("confusion", "accuracy"), "lira_selection": ("vulnerability",),
        "one_run": ("one_run", "accuracy", "records"), "random_splits": ("swap", "accuracy", "records"),
        "ruli": ("blind", "ruli", "accuracy", "records"), "swap": ("swap", "accuracy", "records"),
    }  # fmt: skip


def test_a_metric_is_possible_where_all_that_it_needs_is_offered():
    assert "ruli_on_pairs" in registry.possible(registry.protocol("swap").offers)
    assert registry.lacking(registry.protocol("random_splits").offers, "ruli_on_pairs") == ("swapped_pairs",)
    assert registry.lacking(("forgotten",), "relearn") == ("weights",)
    assert registry.lacking(("imported",), "swap") == (), "it says in a row what a folder lacks"
    assert registry.lacking(("imported",), "kernel") == ("one_forget_set",)
    assert registry.lacking((), "privleak") == ("fair_draw",), "tokens are read from models, not offered"


@pytest.mark.parametrize("name", registry.names("metrics"))
def test_a_plan_reads_the_options_that_a_metric_has(name):
    full = getattr(registry.load("metrics", name), "Options", Settings)
    assert set(registry.options("metrics", name).model_fields) == set(full.model_fields)


@pytest.mark.parametrize("kind", ["protocols", "methods", "attacks", "metrics", "models", "data"])
def test_options_that_nobody_sets_lie_where_a_study_may_set_them(kind):
    for name in registry.names(kind):
        form = getattr(registry.load(kind, name), "Options", Settings)
        for field in (field for field in form.model_fields.values() if not field.is_required()):
            TypeAdapter(Annotated[field.annotation, field]).validate_python(field.get_default())
