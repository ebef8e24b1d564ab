"""Show the results of tuning, how all tried and audited settings trade off, and how methods rank overall."""

from typing import Any

from unlearning_audit.comparisons.standings import standings
from unlearning_audit.evaluation import effects, verdicts
from unlearning_audit.evaluation.trials import read
from unlearning_audit.report import style
from unlearning_audit.report.figures import _front, _tuning
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import standings as standings_table
from unlearning_audit.report.tables import tuning as tuning_table
from unlearning_audit.store.files import read_json


def _standings(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row for each method with its distance from retraining and its ranks, over all scenarios of the study.

    ``settings["places"]`` lists, for each scenario and setting, the files of verdicts and of each method's effects
    (what each model and sample adds to the numbers that decide verdicts). ``settings`` also has the margins, and the
    number and seed of the random draws for intervals.
    """
    effects_of, verdicts_of = [], {}
    for place in settings["places"]:
        effects_of.append({method["method"]: effects.read(method["effects"]) for method in place["methods"]})
        rows = verdicts.read(place["verdicts"], verdicts.VERDICTS)
        verdicts_of[place["scenario"], place["setting"]] = {row["method"]: row["verdict"] for row in rows}
    options = {name: settings[name] for name in ("margins", "draws", "seed")}
    return standings_table.lines(standings(effects_of, **options), verdicts_of)


def tuning(settings: dict[str, Any], **shown: str) -> None:
    """Write the table of tuning, draw the figures of tuning and of the Pareto front, and write the table of overall
    standings.

    Parameters
    ----------
    settings
        "campaigns": for each tuned method, the files of its trials, its distances, its spec and its chosen setting.
        "places": what `_standings` reads.
    shown
        The files to write, by the names of `workflow.parameters.output_paths`.
    """
    campaigns = []  # one for each tuned method
    for files in settings["campaigns"]:
        trials = read(files["trials"])
        # A trial names its deciding metric with the attack behind it, such as "auc (kde)"; a failed trial names none.
        margins = {row["metric"].partition(" ")[0]: row["margin"] for row in trials if row["metric"]}
        audited = tuning_table.distances(verdicts.read(files["distances"], verdicts.DISTANCES), margins)
        seconds = read_json(files["spec"])["seconds"]["process"]
        setting = read_json(files["chosen"])
        campaigns.append({**files, "chosen": setting, "trials": trials, "seconds": seconds, "distances": audited})
    rows = tuning_table.lines(campaigns)
    csv, md, tex, svg, png = (shown[ending] for ending in ("csv", "md", "tex", "svg", "png"))
    formats.write([tuning_table.sheet(rows, settings["study"])], csv=csv, md=md, tex=tex)
    style.save(_tuning.draw(campaigns), svg=svg, png=png)
    style.save(_front.draw(rows), svg=shown["front_svg"], png=shown["front_png"])
    sheet = standings_table.sheet(_standings(settings), settings["study"])
    csv, md, tex = (shown[f"standings_{ending}"] for ending in ("csv", "md", "tex"))
    formats.write([sheet], csv=csv, md=md, tex=tex)
