"""Show what tuning found: chosen and published settings side by side, and the front of all that were tried."""

from job import script

from unlearning_audit.artifacts import verdicts
from unlearning_audit.artifacts.files import read_json
from unlearning_audit.artifacts.trials import read
from unlearning_audit.display import style
from unlearning_audit.display.figures import _tuning
from unlearning_audit.display.tables import formats
from unlearning_audit.display.tables import tuning as display


@script
def tuning(csv: str, md: str, tex: str, svg: str, png: str, settings: dict) -> None:
    """The files are named in ``settings``, method by method; the rule's inputs are the same, each once."""
    campaigns = []
    for place in settings["campaigns"]:
        trials = read(place["trials"])
        margins = {row["metric"].partition(" ")[0]: row["margin"] for row in trials if row["metric"]}
        audited = display.distances(verdicts.read(place["distances"], verdicts.DISTANCES), margins)
        seconds = read_json(place["spec"])["seconds"]["process"]
        chosen = read_json(place["chosen"])
        campaigns.append({**place, "chosen": chosen, "trials": trials, "seconds": seconds, "distances": audited})
    formats.write([display.sheet(display.lines(campaigns), settings["study"])], csv=csv, md=md, tex=tex)
    style.save(_tuning.draw(campaigns), svg=svg, png=png)
