"""What RULI's metrics read of a case: which models answer, for which samples, and under which name."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.metrics import accuracy, blind, ruli, vulnerability
from unlearning_audit.protocols import lira_selection
from unlearning_audit.protocols import ruli as protocol
from unlearning_audit.stats import paired

import metric_calls as call
from row_places import about
from ruli_cases import SAMPLES, SEEN, Folder, covers, data, memberships, retrained, trained

OPTIONS = protocol.Options(target_size=180, target_blocks=4, shadow_blocks=60)
LEAK = 1.5


def rows(case, **options) -> dict[tuple[str, str, str], dict]:
    return {(r.attack, r.metric, about(r)): r for r in ruli.rows(case, ruli.Options(**options), None)}


def leaky(member: Membership) -> np.ndarray:
    """Unlearning that leaves half of what was learned."""
    return np.where(member.forget, LEAK, retrained(member))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder with random targets, and its populations of models."""
    folder = Folder(tmp_path_factory.mktemp("plain"), memberships(OPTIONS))
    means = {"original": trained, "leaky": leaky, "retrain": retrained, "control": retrained}
    return folder, {name: folder.add(name, mean) for name, mean in means.items()}


def test_every_question_is_asked_of_its_own_models(plain):
    folder, files = plain
    table = rows(folder.case(files["original"], files["leaky"], files["retrain"], files["control"]), density="gaussian")
    distances = {"privacy": LEAK, "efficacy": LEAK, "trained": SEEN, "remained": SEEN}
    places = {("ruli", name): distance for name, distance in distances.items()}
    for (attack, name), distance in {**places, ("u_lira", "privacy"): LEAK, ("population", "privacy"): LEAK}.items():
        row = table[attack, f"{name}_auc", ""]
        assert covers(row, ndtr(distance / math.sqrt(2)), 0.1), (attack, name, row)
        assert row.n == 180
    assert {setting for _, metric, setting in table if not metric.endswith("_roc")} == {""}
    curve = [setting for _, metric, setting in table if metric == "efficacy_roc"]
    assert curve == [f"rate={rate:g}" for rate in ruli.CURVE]
    assert table["ruli", "privacy_roc", "rate=0.05"].value == table["ruli", "privacy_tpr_at_5pct_fpr", ""].value


def effects(folder, case):
    """metric → the numbers that its effects add up to, and its row."""
    parts, table = ruli.effects(case, ruli.Options(fpr=())), rows(case, fpr=())
    fields = ("value", "influence", "imagined", "unit", "split")
    return {
        metric: (
            part,
            paired.distances(**{n: getattr(part, n) for n in fields}).value[0],
            table["ruli", metric, ""].value,
        )
        for metric, part in parts.items()
    }


def test_effects_add_up_to_aucs_and_say_on_which_side_of_retraining_a_method_lies(plain):
    folder, files = plain

    def of(method):
        return effects(folder, folder.case(files["original"], method, files["retrain"], files["control"]))

    found = of(files["leaky"])
    assert list(found) == ["privacy_auc", "efficacy_auc"]
    for part, mean, value in found.values():
        assert mean == pytest.approx(value, abs=1e-12)
        assert len(np.unique(part.unit)) == 12
        assert set(part.index) == set(np.flatnonzero(folder.parts[0].weight))
    _, mean, value = of(folder.add("over", lambda member: np.where(member.forget, -4.0, retrained(member))))[
        "privacy_auc"
    ]
    assert mean < 0.1 < 0.9 < value


def test_accuracies_add_up_and_models_that_keep_the_same_are_one_unit(plain):
    folder, files = plain
    case = folder.case(files["original"], files["original"])
    parts = call.parts(accuracy, case, {})
    for role in ("retain", "test"):
        part, (row,) = (
            parts[f"accuracy_{role}"],
            [row for row in call.rows(accuracy, case, {}) if (row.metric, row.role) == ("accuracy", role)],
        )
        assert part.value.mean() == pytest.approx(row.value, abs=1e-12)
        assert not part.rule.deciding
        assert len(np.unique(part.unit)) == 12, "thirds keep different samples"


def test_only_target_samples_are_asked_about(plain, tmp_path):
    # canaries are forgotten among others whose phi would give them away
    selection = Selection(np.arange(SAMPLES) % 2 == 0, np.zeros(SAMPLES, bool), np.zeros(SAMPLES))
    options = protocol.Options(
        target_set="canary", target_size=120, target_blocks=4, shadow_blocks=36, canary_rate=0.5, attack_size=300
    )
    folder = Folder(tmp_path, memberships(options, selection), selection)
    queried = folder.parts[0].weight > 0

    def gives_away_others(member):
        return np.where(member.forget & ~queried, 50.0, retrained(member))

    files = {"original": folder.add("original", trained), "unlearned": folder.add("unlearned", gives_away_others)}
    files["retrain"] = folder.add("retrain", retrained)
    table = rows(folder.case(files["original"], files["unlearned"], files["retrain"]))
    assert table["ruli", "privacy_auc", ""].n == 120
    for name in ("privacy", "efficacy"):
        assert covers(table["ruli", f"{name}_auc", ""], 0.5, 0.15), name
    assert ("ruli", "privacy_auc", "target=vulnerable") not in table  # all of them are
    assert blind_rows(folder.case(files["original"], files["unlearned"]))["blind_auc"].n == 100


def test_two_kinds_of_targets_are_read_apart(tmp_path):
    third = np.arange(SAMPLES) % 3
    selection = Selection(third == 0, third == 1, np.zeros(SAMPLES))
    options = protocol.Options(
        target_set="vulnerable_and_protected", target_size=120, target_blocks=4, shadow_blocks=40
    )
    folder = Folder(tmp_path, memberships(options, selection), selection)

    def forgets_the_protected_only(member):
        values = np.where(member.retain & selection.vulnerable, -1.0, retrained(member))
        return np.where(member.forget & selection.vulnerable, 2.0, values)

    original, unlearned = folder.add("original", trained), folder.add("unlearned", forgets_the_protected_only)
    table = rows(folder.case(original, unlearned, folder.add("retrain", retrained)), density="gaussian")
    assert covers(table["ruli", "privacy_auc", "target=vulnerable"], ndtr(math.sqrt(2)), 0.12)
    assert covers(table["ruli", "privacy_auc", "target=protected"], 0.5, 0.15)
    both = table["ruli", "privacy_auc", ""]
    assert 0.6 < both.value < 0.85
    assert table["ruli", "privacy_roc", "target=vulnerable;rate=0.2"].n == 120
    sizes = [table["ruli", "privacy_auc", f"target={kind}"].n for kind in ("vulnerable", "protected")]
    assert (both.n, sizes) == (240, [120, 120])
    # table 3: of kept vulnerable samples Φ(−1) are still right; of all that the targets keep far more
    row = table["", "accuracy", "role=retain;target=vulnerable"]
    assert covers(row, ndtr(-1.0), 0.1)
    assert row.n == 120


def test_an_audit_needs_shadow_models(plain):
    folder, files = plain
    case = folder.case(files["original"][:1], files["leaky"][:1], files["retrain"][:1])
    case.splits = case.splits[:1]
    with pytest.raises(ValueError, match="there are no shadow models; draw them by protocol ruli"):
        rows(case)
    assert ruli.effects(case, ruli.Options()) == {}


def blind_rows(case, **options) -> dict[str, dict]:
    settings = {"metrics": {"blind": blind.Options(**options).model_dump(mode="json")}, "seed": 0}
    return {r.metric: r for r in call.rows(blind, case, settings)}


def halves(tmp_path) -> Folder:
    """Models of random halves."""
    options, of = lira_selection.Options(pairs=24), data()
    parts = [
        Membership.concatenate([lira_selection.draw(b, "pairs", of, options, 1) for b in range(start, start + 8)])
        for start in range(0, 24, 8)
    ]
    return Folder(tmp_path, parts)


def test_a_selection_finds_what_was_planted_in_the_models_before_unlearning(tmp_path):
    planted = np.arange(SAMPLES) % 20 == 0  # 35, of which 5 belong to the test part
    folder = halves(tmp_path)
    original = folder.add("original", lambda member: np.where(member.train & planted, 10.0, 0.0))
    case = folder.case(original, folder.add("unlearned", lambda member: np.zeros(member.train.shape)))
    options = vulnerability.Options(density="gaussian", fpr=0.01, band=0.1)
    selection = vulnerability.select(case, options)
    pool = data().part == 0
    np.testing.assert_array_equal(selection.vulnerable & planted, planted & pool)
    assert (selection.vulnerable & ~planted).sum() <= 5
    assert selection.protected[pool & ~planted].mean() > 0.3
    assert not selection.protected[planted].any()
    for verdict in (selection.vulnerable, selection.protected, selection.ratio != 0):
        assert not verdict[~pool].any()
    assert selection.ratio[planted & pool].min() > selection.ratio[~planted].max() + 5
    # rows count the same verdicts
    numbers = {r.metric: r for r in vulnerability.rows(case, options, None)}
    assert numbers["highly_memorized"].value == selection.vulnerable.sum()
    # 30 of 600 members are planted; the rate of the others is that of false alarms
    assert covers(numbers["lira_tpr_at_1pct_fpr"], 0.05 + 0.95 * 0.01, 0.1)
    assert "one threshold for 48 targets" in numbers["lira_tpr_at_0.01pct_fpr"].note
