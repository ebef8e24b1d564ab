"""What metrics, methods and axes are called on paper, which way is better, and how a number is read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """How a metric is labelled and read; ``better`` is "higher", "lower" or "" where neither is; ``wide`` says that its
    values span orders of magnitude."""

    label: str
    better: str
    reading: str
    wide: bool = False


METRICS = {
    "q": Meaning(
        "Q",
        "higher",
        "Unlearning quality: 1 minus the advantage of the strongest attack. 1 = nothing left to find, 0 = every "
        "forgotten sample is recognised. Retraining is the yardstick.",
    ),
    "q_crossfit": Meaning(
        "Q, cross-fitted",
        "higher",
        "Q with the strongest attack chosen on one half of the samples and read on the other, which removes the "
        "pessimism of choosing among many attacks.",
    ),
    "q_sd": Meaning(
        "sd of Q over pairs", "lower", "Standard deviation of Q over pairs of splits: smaller = more reproducible."
    ),
    "mia_score": Meaning(
        "MIA score",
        "",
        "1 minus the AUC of one attack that tells forgotten from held-out samples: 0.5 = chance, below = the attack "
        "succeeds, above = forgotten samples look less known than unseen ones.",
    ),
    "advantage": Meaning(
        "advantage", "lower", "How much more often the attack says yes to forgotten than to held-out samples."
    ),
    "auc": Meaning("AUC", "", "Area under the ROC curve of forgotten against held-out samples: 0.5 = chance."),
    "tpr_at_fpr": Meaning(
        "TPR at fixed FPR", "", "Share of forgotten samples recognised at this rate of false alarms; chance = the rate."
    ),
    "accuracy": Meaning("accuracy", "", "Share of samples that the model classifies as labelled."),
    "ic_score": Meaning(
        "IC score", "higher", "1 minus the rate at which the taught confusion survives: 1 = the confusion is forgotten."
    ),
    "ic_error": Meaning("IC error", "lower", "Rate at which the taught confusion survives: 0 = it is forgotten."),
    "forgetting_quality": Meaning(
        "forgetting quality F",
        "higher",
        "Mean per-sample score of the competition; perfect unlearning is not 1 but F₀.",
    ),
    "forgetting_quality_null": Meaning("F₀", "", "Forgetting quality of retrained against retrained models."),
    "forgetting_quality_over_null": Meaning(
        "F / F₀", "higher", "Forgetting quality over that of retrained against retrained models: 1 = like retraining."
    ),
    "efficacy": Meaning(
        "efficacy",
        "lower",
        "1 over the mean squared gradient norm of the forgotten samples: the lower, the less settled the weights are "
        "on them. Retraining is the yardstick.",
        wide=True,
    ),
    "efficacy_median": Meaning(
        "median efficacy",
        "lower",
        "1 over the mean squared gradient norm of the forgotten samples, as a median over models: the lower, the less "
        "settled the weights are on them. Retraining is the yardstick.",
        wide=True,
    ),
    "efficacy_upper_bound": Meaning(
        "upper bound of efficacy",
        "lower",
        "1 over the squared norm of the mean gradient of the forgotten samples.",
        wide=True,
    ),
    "efficacy_upper_bound_median": Meaning(
        "median upper bound",
        "lower",
        "1 over the squared norm of the mean gradient of the forgotten samples: never less than efficacy.",
        wide=True,
    ),
    "information": Meaning(
        "ι",
        "higher",
        "Mean squared gradient norm of the forgotten samples: the higher, the less settled the weights.",
        wide=True,
    ),
    "attack_probability": Meaning(
        "probability of membership",
        "lower",
        "Mean probability of membership that an attack gives to the forgotten samples. Retraining is the yardstick.",
        wide=True,
    ),
    "efficacy_auc": Meaning(
        "efficacy AUC",
        "lower",
        "AUC of the likelihood ratio that tells unlearned from never trained: 0.5 = like retraining.",
    ),
    "privacy_auc": Meaning(
        "privacy AUC", "lower", "AUC of the likelihood ratio that tells unlearned from held-out samples: 0.5 = chance."
    ),
    "score": Meaning("final score", "higher", "Forgetting quality times the ratios of retain and test accuracy."),
    "lower_bound": Meaning("guaranteed Q", "", "Least Q that the privacy budget of training guarantees."),
}

#: The one number per protocol that the sentences and controls speak of: the first that a scenario has.
PRIMARY = ("q", "ic_score", "forgetting_quality_over_null", "privacy_auc", "efficacy_median")

#: What a metric must read on retrained models; other metrics have no such value.
IDEAL = {"q": 1.0, "q_crossfit": 1.0, "forgetting_quality_over_null": 1.0, "privacy_auc": 0.5}

#: The attack that is meant where none is named, first come first: the paper's set, then one classical attack.
ATTACKS = ("paper", "extended", "confidence/unlearned", "confidence/trained", "ruli")

REFERENCES = ("none", "retrain", "retrain_control")


def meaning(metric: str) -> Meaning:
    """The metric's entry, or its name with spaces and nothing more."""
    return METRICS.get(metric, Meaning(metric.replace("_", " "), "", ""))


def method(name: str) -> str:
    """A method's name for people."""
    return "retrain (control)" if name == "retrain_control" else name.replace("_", " ")


def value(text: str) -> str:
    """The value of an axis for people."""
    return "∞" if text == "inf" else text


def axis(name: str) -> str:
    """The name of an axis for people."""
    known = {"epsilon": "privacy budget ε", "size": "samples", "alpha": "α = |F| / |R ∪ F|", "delta": "δ",
             "fraction": "share of the class"}  # fmt: skip
    return known.get(name, name.replace("_", " "))


def setting(text: str) -> str:
    """An axis setting such as "epsilon=8;size=500" for people."""
    return ", ".join(part.replace("=inf", "=∞").replace("=", " = ") for part in text.split(";") if part)
