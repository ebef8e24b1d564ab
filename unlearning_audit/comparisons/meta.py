"""Meta-evaluation: how good each metric is, on the same models as all others.

Properties (after Tu, Hu & Ma 2024, §4.3–4.4):

* grounding: does retraining score as perfect;
* separation: how far is retraining from doing nothing;
* power: how many pairs of methods differ significantly;
* agreement: does another seed or another size of the data rank the methods alike;
* monotonicity: does the value fall as the privacy budget grows;
* cost: how many models must be made.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.plugins.declarations import Comparison, Quantity
from unlearning_audit.stats import Estimate, empty
from unlearning_audit.stats.jackknife import jackknife_variance


@dataclass(frozen=True)
class Compared:
    """A number that a metric declares, and how the meta-evaluation compares it with other metrics.

    Parameters
    ----------
    quantity
        The number, as the metric declares it.
    how
        Under which name, with which ideal value and direction, and from which rows of results.
    """

    quantity: Quantity
    how: Comparison

    def goodness(self, value: np.ndarray) -> np.ndarray:
        """Return ``value`` (of any shape) transformed so that larger means more forgotten.

        Where the ideal value may be missed both ways (``two_sided``), this is minus the distance from it. Where a
        smaller value means more forgotten (``falling``), it is minus the value; else the value itself.
        """
        if self.how.two_sided:
            return -np.abs(value - self.how.ideal)
        return -value if self.how.falling else value

    def reads(self, row: Row | Failure) -> TypeGuard[Row]:
        """Return whether a row of results holds the number of this comparison, with its attack and role; a failure does
        not."""
        how = self.how
        if not isinstance(row, Row):
            return False
        # Rows of single models have another name than their mean where the comparison declares one.
        name = how.per_model if how.per_model and row.model is not None else self.quantity.name
        return row.metric == name and how.attack in ("", row.attack) and how.role in ("", row.role)


#: A record (scenario, method, axes) and its row.
Numbered = tuple[Record, Row]

#: Fields of a row that hold the number of a draw of memberships or of initial weights.
SEEDS = ("pair", "model")

#: The fewest pairs of splits, or models, from which the property power estimates how differences of methods vary.
FEWEST_SEEDS = 3

#: The settings over whose values monotonicity (budget) and agreement (size) are measured.
BUDGET, SIZE = "epsilon", "size"

#: Metric, role and pair of the row of a method's loss of test accuracy; without a pair, it is of all pairs together.
LOSS = ("accuracy_gap", "test", None)

#: Methods that are not ranked: a second retraining would repeat the first.
UNRANKED = ("retrain_control",)


#: The names of the properties in the table, of which the last is the cost.
PROPERTIES = ("grounding", "separation", "power", "agreement over seeds", "agreement over sizes", "monotonicity",
              "models")  # fmt: skip

#: Start of the name of a property that compares a metric with another one.
WITH = "agreement with "


def evaluate(
    records: list[Record],
    quantities: Iterable[Quantity],
    *,
    breaking_loss: float,
    members: Mapping[str, tuple[str, Membership]] | None = None,
) -> list[dict[str, Any]]:
    """Return rows on how good each metric is, with the columns metric, property, scenario, value, ci_low, ci_high, n
    and note.

    A property that the study cannot show has no row. A property that it could show but does not has a row with NaN and
    the reason.

    Parameters
    ----------
    records
        All rows of metrics of a study.
    quantities
        The numbers that metrics declare, of which those with ``comparisons`` are compared with each other.
    breaking_loss
        A method counts as broken in a scenario if the lower limit of its loss of test accuracy against retraining
        ("accuracy_gap") is above this.
    members
        Scenario → its protocol and the memberships of its models, which are counted for the property "models" (None: it
        is left out).
    """
    compared = declared_comparisons(quantities)
    properties: list[dict[str, Any]] = []
    broken_methods: dict[str, set[str]] = defaultdict(set)  # by scenario
    for record in records:
        row = record.row
        if isinstance(row, Row) and (row.metric, row.role, row.pair) == LOSS and row.ci_low > breaking_loss:
            broken_methods[record.scenario].add(record.method)
    for name, metric in compared.items():
        by_scenario: dict[str, list[Numbered]] = defaultdict(list)
        for record in records:
            if metric.reads(record.row):
                row = _with_logarithms(record.row) if metric.quantity.logarithmic else record.row
                by_scenario[record.scenario].append((record, row))
        for scenario, numbered in by_scenario.items():
            estimates = list(_properties(metric, numbered, broken_methods[scenario]))
            if members and scenario in members:
                estimates.append(("models", models_needed(metric, *members[scenario])))
            properties += [_row(name, label, scenario, estimate) for label, estimate in estimates]
    return properties + _agreements_of_metrics(records, compared, common_scenario(properties, "power"))


def _row(metric: str, label: str, scenario: str, estimate: Estimate) -> dict[str, Any]:
    """Return a row of `evaluate`: the ``estimate`` of the property ``label`` of a ``metric`` in a ``scenario``."""
    numbers = {"value": estimate.value, "ci_low": estimate.low, "ci_high": estimate.high}
    place = {"metric": metric, "property": label, "scenario": scenario}
    return {**place, **numbers, "n": estimate.n, "note": estimate.note}


def overview(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (metric, property) → the row that represents it, from the rows of `evaluate`.

    All metrics are represented by rows of one scenario for each property, which `common_scenario` chooses, so that
    metrics are compared on the same models. A metric that this scenario lacks is represented by its row of the first
    scenario with a value, or of the first scenario if no scenario has a value. Agreements between two metrics are left
    out.
    """
    by_scenario: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        if row["property"] in PROPERTIES:
            by_scenario[row["metric"], row["property"]][row["scenario"]] = row
    chosen = {label: common_scenario(rows, label) for label in PROPERTIES}
    # ``min`` returns the first row with a value, because False sorts before True, and else the first of all.
    return {
        (metric, label): of_metric.get(chosen[label])
        or min(of_metric.values(), key=lambda row: math.isnan(row["value"]))
        for (metric, label), of_metric in by_scenario.items()
    }


def common_scenario(rows: list[dict[str, Any]], label: str) -> str:
    """Return the scenario whose rows represent the property ``label`` where one row is shown for each metric; "" if
    there is none.

    Metrics can be compared only on the same models, so all properties come from one scenario if possible: the one in
    which most metrics have the property power. If this scenario has no row of ``label``, it is the one in which most
    metrics have such a row; the property "models" stays with the first choice. Of scenarios with equally many metrics,
    the first is taken. Rows without a value do not count, unless no row of their property has a value.

    Parameters
    ----------
    rows
        Rows of `evaluate`.
    """
    with_values = {row["property"] for row in rows if not math.isnan(row["value"])}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))  # property → scenario → count of metrics
    for row in rows:
        if row["property"] not in with_values or not math.isnan(row["value"]):
            counts[row["property"]][row["scenario"]] += 1
    most_power = max(counts["power"], key=counts["power"].__getitem__, default="")
    if most_power in counts[label] or label == "models":
        return most_power
    return max(counts[label], key=counts[label].__getitem__, default="")


def verdict(row: dict[str, Any]) -> str:
    """Return how a row of `evaluate` judges its metric: "good", "bad", or "" where it shows neither.

    Power and models, and rows without an interval, are never judged. Grounding is good if its interval contains 0, the
    ideal score, and else bad. Monotonicity is good if its interval lies below 0, and bad if it lies above. All other
    properties are good above 0 and bad below; separation is bad also if its interval contains 0.
    """
    low, high = row["ci_low"], row["ci_high"]
    if math.isnan(low + high) or row["property"] in ("power", "models"):
        return ""
    if row["property"] == "grounding":
        return "good" if low <= 0 <= high else "bad"
    if row["property"] == "monotonicity":  # it should fall
        low, high = -high, -low
    if low > 0:
        return "good"
    return "bad" if high < 0 or row["property"] == "separation" else ""


def _agreements_of_metrics(records: list[Record], compared: dict[str, Compared], scenario: str) -> list[dict[str, Any]]:
    """Return Kendall's τ-b between the rankings of methods by every two metrics in one scenario, as rows of `evaluate`:
    two rows of equal value, one for either metric.

    Two metrics are skipped if fewer than three methods have values by both. The control of retraining is not ranked.

    Parameters
    ----------
    compared
        Name of a metric → how it is compared.
    """
    goodness: dict[str, dict[str, float]] = {}  # metric → method → value, larger if more is forgotten
    for name, metric in compared.items():
        rows = [(record, record.row) for record in records if record.scenario == scenario and metric.reads(record.row)]
        table = _tables_by_place(rows).get((), {})  # () is the only key, because no axes and no seeds are named
        good = {m: float(metric.goodness(np.array(row.value))) for m, row in table.items() if m not in UNRANKED}
        goodness[name] = {m: value for m, value in good.items() if not math.isnan(value)}
    taus = []
    ranking = [name for name, good in goodness.items() if len(good) > 2]
    for first, second in itertools.permutations(ranking, 2):
        both = [m for m in goodness[first] if m in goodness[second]]
        if len(both) > 2:
            x, y = (np.array([goodness[name][m] for m in both]) for name in (first, second))
            taus.append(_row(first, WITH + second, scenario, stats.kendall(x=x, y=y)))
    return taus


def _properties(metric: Compared, records: list[Numbered], broken_methods: set[str]) -> Iterator[tuple[str, Estimate]]:
    """Yield (name of a property, Estimate) for each property of one metric that the results of one scenario can show.

    Grounding, separation and power need a scenario in which neither the budget nor the size varies.

    Parameters
    ----------
    records
        The metric's rows in that scenario.
    broken_methods
        The methods that leave broken models in that scenario; monotonicity is computed without them.
    """
    # ``place``: budget, size, pair and model of a table, by name, as far as they are fixed there.
    tables = [(dict(place), t) for place, t in _tables_by_place(records, axes=(BUDGET, SIZE), seeds=SEEDS).items()]
    of_all_seeds = [(place, table) for place, table in tables if not place.keys() & set(SEEDS)]
    of_one_seed = [table for place, table in tables if len(place) == 1 and place.keys() <= set(SEEDS)]
    if [place for place, _ in of_all_seeds] == [{}]:  # neither budget nor size varies
        ((_, table),) = of_all_seeds
        yield "grounding", grounding(metric, table)
        yield "separation", separation(metric, table)
        yield "power", power(table, of_one_seed)
    if of_one_seed:
        yield "agreement over seeds", agreement(metric, of_one_seed)
    sizes = [table for place, table in of_all_seeds if SIZE in place]
    if sizes:
        yield "agreement over sizes", agreement(metric, sizes)
    budgets = {float(place[BUDGET]): table for place, table in of_all_seeds if BUDGET in place}
    if budgets:
        yield "monotonicity", monotonicity(metric, budgets, broken_methods)


#: Method → its row.
Table = dict[str, Row]


def _tables_by_place(
    records: list[Numbered], *, axes: tuple[str, ...] = (), seeds: tuple[str, ...] = ()
) -> dict[tuple[tuple[str, Any], ...], Table]:
    """Return the methods' rows for each combination of values of ``axes`` and ``seeds``: (name, value) pairs → method →
    row.

    The key has no pair for a setting or a seed that is not fixed in these rows.

    Of several rows of a method in one combination, the one that the fewest further settings and fields narrow down is
    kept, because it is the most general; of equally general ones the last.

    Parameters
    ----------
    axes
        Names of settings that the study varies, such as the budget.
    seeds
        Fields of a row that tell splits or models apart.
    """
    tables: dict[tuple[Any, ...], Table] = defaultdict(dict)
    fewest: dict[tuple[Any, ...], int] = {}  # how many further settings and fields the row that is kept has
    for record, row in records:
        of_axes = sorted((name, value) for name, value in record.axes.items() if name in axes)
        place = (*of_axes, *((name, value) for name, value in row.place if name in seeds))
        others = len(record.axes) + len(row.place) - len(place)
        if others <= fewest.get((place, record.method), others):
            tables[place][record.method] = row
            fewest[place, record.method] = others
    return tables


def _with_logarithms(row: Row) -> Row:
    """Return the row with the logarithms of its value and limits in their place; NaN for each that is not above 0."""
    numbers = (row.value, row.ci_low, row.ci_high)
    value, low, high = (math.log(number) if number > 0 else math.nan for number in numbers)
    return replace(row, value=value, ci_low=low, ci_high=high)


def _standard_error(row: Row) -> float:
    """Return the standard error behind a 95 % interval, from the wider of its two halves; NaN if a limit is NaN."""
    half_width = np.maximum(row.ci_high - row.value, row.value - row.ci_low)  # NaN if either is
    return float(half_width / stats.normal_quantile(0.975))


def grounding(metric: Compared, table: Table) -> Estimate:
    """Return the difference of retraining from the ideal score, with its interval, which should contain 0.

    The result is NaN, with the reason, if the metric has no ideal score or retraining has no value.

    Parameters
    ----------
    table
        Method → row.
    """
    if math.isnan(metric.how.ideal):
        return empty(n=0, note="no value is known for perfect unlearning")
    row = table.get("retrain")
    if row is None or math.isnan(row.value):
        return empty(n=0, note="retrain was not measured")
    value, low, high = (number - metric.how.ideal for number in (row.value, row.ci_low, row.ci_high))
    return Estimate(value, low, high, row.n)


def separation(metric: Compared, table: Table) -> Estimate:
    """Return how far retraining is from doing nothing: the difference of their goodness (`Compared.goodness`) in
    standard errors, ± 1.96.

    The result is NaN, with the reason, if one of the two has no value or no interval, or both intervals have no width.

    Parameters
    ----------
    table
        Method → row.
    """
    both = [table[method] for method in ("retrain", "none") if method in table and not math.isnan(table[method].value)]
    if len(both) < 2:
        return empty(n=0, note="retrain and none were not both measured")
    error = math.hypot(*(_standard_error(row) for row in both))
    if not error > 0:
        return empty(n=2, note="retrain or none has no interval, or one without width")
    of_retrain, of_none = (float(metric.goodness(np.array(row.value))) for row in both)
    z, half = (of_retrain - of_none) / error, float(stats.normal_quantile(0.975))
    return Estimate(z, z - half, z + half, 2, "")


def power(table: Table, seeds: Sequence[Table] = ()) -> Estimate:
    """Return the share of the pairs of methods that a metric distinguishes, each at an error rate of 5 %.

    If two methods have values in at least three of the tables ``seeds``, the test is Student's t on the differences, so
    that what methods share cancels. For other pairs of methods the limit is 1.96 standard errors of a difference of two
    independent numbers, which is too wide. Pairs of methods with neither enough values nor intervals are skipped. The
    result is NaN, with the reason, if all pairs are skipped. The control of retraining is left out.

    Parameters
    ----------
    table
        Method → row.
    seeds
        Tables of single pairs of splits, or of single models: method → row.
    """
    rows = {m: row for m, row in table.items() if m not in UNRANKED and not math.isnan(row.value)}
    by_seed = {m: np.array([of_seed[m].value if m in of_seed else math.nan for of_seed in seeds]) for m in rows}
    distinguished, tests = [], set()
    for first, second in itertools.combinations(rows, 2):
        gaps = by_seed[first] - by_seed[second]
        gaps = gaps[~np.isnan(gaps)]
        if len(gaps) >= FEWEST_SEEDS:
            interval, test = stats.mean_interval(values=gaps), f"paired over {len(gaps)}"
            distinguished.append(interval.low > 0 or interval.high < 0)  # False for NaN, of an infinite difference
        elif not math.isnan(sum(rows[m].ci_low + rows[m].ci_high for m in (first, second))):
            gap, test = rows[first].value - rows[second].value, "as if methods were independent"
            error = math.hypot(_standard_error(rows[first]), _standard_error(rows[second]))
            distinguished.append(abs(gap) > float(stats.normal_quantile(0.975)) * error)
        else:
            continue
        tests.add(test)
    if not distinguished:
        return empty(n=0, note="fewer than two methods have an interval")
    note = f"a count over pairs of methods, so without an interval; {', '.join(sorted(tests))}"
    return Estimate(float(np.mean(distinguished)), math.nan, math.nan, len(distinguished), note)


def agreement(metric: Compared, tables: list[Table]) -> Estimate:
    """Return the mean Kendall τ-b between the rankings of methods in every two ``tables``, with a jackknife interval
    over tables.

    Only methods with a value in all tables are ranked, and not the control of retraining. The result is NaN, with the
    reason, for fewer than two tables or three methods, and if a ranking has all methods equal. Two tables give a value
    without an interval.

    Parameters
    ----------
    tables
        For each seed, or each size, a table: method → row.
    """
    candidates = sorted({m for table in tables for m in table} - set(UNRANKED))
    methods = [m for m in candidates if all(m in table and not math.isnan(table[m].value) for table in tables)]
    incomplete = ", ".join(m for m in candidates if m not in methods)
    note = f"{len(methods)} methods" + (f"; {incomplete}: no value in one of the rankings" if incomplete else "")
    if len(tables) < 2 or len(methods) < 3:
        why = "needs two rankings of at least three methods"
        return empty(n=len(tables), note=f"{why}, but there are {len(tables)} of {note}")
    good = metric.goodness(np.array([[table[m].value for m in methods] for table in tables], dtype=np.float64))
    tau = np.full((len(tables), len(tables)), np.nan)  # the diagonal stays NaN, which means leave out
    for i, j in itertools.combinations(range(len(tables)), 2):
        tau[i, j] = tau[j, i] = stats.kendall(x=good[i], y=good[j]).value
    if np.isnan(tau[np.triu_indices(len(tables), 1)]).any():
        return empty(n=len(tables), note="all methods are equal in one of the rankings")
    value = float(np.nanmean(tau))
    if len(tables) < 3:
        return Estimate(value, math.nan, math.nan, len(tables), f"two rankings are too few for an interval; {note}")
    indices = np.arange(len(tables))
    left_out = np.array([np.nanmean(tau[np.ix_(indices != i, indices != i)]) for i in indices])
    half = float(stats.t_quantile(p=0.975, dof=len(tables) - 1) * np.sqrt(jackknife_variance(left_out)))
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0), len(tables), note)


def monotonicity(metric: Compared, budgets: dict[float, Table], broken_methods: Iterable[str] = ()) -> Estimate:
    """Return the mean over methods of Spearman's ρ between budget and goodness; −1 means that goodness falls with every
    step, as theory predicts.

    Retraining and its control are left out, because theory predicts no fall for them. Left out are also
    ``broken_methods``, which leave broken models and for which theory predicts nothing, methods that lack a value, and
    methods whose values do not vary. The interval is over methods. The result is NaN, with the reason, for fewer than
    three budgets, and if no method is left.

    Parameters
    ----------
    budgets
        ε → method → row.
    """
    epsilons = sorted(budgets)
    # The methods with a row at every budget.
    methods = sorted(set.intersection(*map(set, budgets.values())) - {"retrain", *UNRANKED, *broken_methods})
    without = "".join(f"; without {name}, which breaks models" for name in sorted(broken_methods))
    if len(epsilons) < 3 or not methods:
        return empty(n=len(epsilons), note="needs three budgets and a method besides retrain" + without)
    values = np.array([[budgets[epsilon][m].value for epsilon in epsilons] for m in methods], dtype=np.float64)
    good = metric.goodness(values[~np.isnan(values).any(axis=1)])
    rho = np.array([stats.spearman(x=np.arange(len(epsilons)), y=of_method).value for of_method in good])
    rho = rho[~np.isnan(rho)]
    if len(rho) == 0:
        return empty(n=0, note="no method varies with the budget")
    mean = stats.mean_interval(values=rho)
    note = (mean.note or "over methods") + without
    return Estimate(mean.value, max(mean.low, -1.0), min(mean.high, 1.0), mean.n, note)


def declared_comparisons(quantities: Iterable[Quantity]) -> dict[str, Compared]:
    """Return every comparison that the ``quantities`` of metrics declare: name of the comparison → comparison, in the
    order in which the table of the meta-evaluation lists them."""
    comparisons = [Compared(quantity, how) for quantity in quantities for how in quantity.comparisons]
    return {metric.how.name: metric for metric in sorted(comparisons, key=lambda metric: metric.how.place)}


def models_needed(metric: Compared, protocol: str, member: Membership) -> Estimate:
    """Return how many models are needed to judge one method by a metric: an exact count, so that its limits equal it.

    Originals that several models copy are trained once. The adversary's models count only if the metric trains on them,
    and retrained ones only if the metric compares with them. The note says how many of each kind there are.

    Parameters
    ----------
    metric
        The metric, whose ``how`` says which models it uses.
    protocol
        The name of the scenario's protocol.
    member
        The memberships of all models of one method in the scenario.
    """
    originals, _original_of_model = member.originals()
    # Which models count of those that are trained, and of those that are unlearned: all, or only the defender's.
    counted = np.ones_like(member.shadow) if protocol in metric.how.shadows else ~member.shadow
    trained, unlearned = int(counted[originals].sum()), int(counted.sum())
    retrained = int((~member.shadow).sum()) if metric.how.retrained else 0
    total = float(trained + unlearned + retrained)
    note = f"{trained} trained, {unlearned} unlearned" + (f", {retrained} retrained" if retrained else "")
    return Estimate(total, low=total, high=total, n=int(total), note=note)
