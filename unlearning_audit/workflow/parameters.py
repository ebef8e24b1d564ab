"""Settings of the jobs that write tables, figures and the report: for each job, one mapping of JSON values from the
plan."""

import hashlib
import math
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import unlearning_audit
from unlearning_audit.plugins import registry, source
from unlearning_audit.plugins.guard import readable
from unlearning_audit.study.schema import Scenario
from unlearning_audit.workflow import compared
from unlearning_audit.workflow.nodes import CaseFiles, Plan, code_of

CAPTIONS = unlearning_audit.ROOT / "resources" / "captions"
#: Templates of tables, in resources/.
TEMPLATES = ("tables/sheet.md.jinja", "tables/sheet.tex.jinja")
#: Files of the page, in resources/page/.
PAGE_FILES = ("page.html", "answer.html", "page.css", "page.js", "vendor/datatables.min.js")


def output_paths(tables: Iterable[str], figures: Iterable[str], folder: str) -> dict[str, str]:
    """Return name of an output → path of the files that a script writes in a study's ``folder``: three for each of the
    ``tables`` and two for each of the ``figures`` (names).

    The outputs of the first table and the first figure are named by the files' endings, such as "csv". The outputs of
    all other tables and figures are named by the table or figure and the ending, such as "cost_csv".
    """
    paths: dict[str, str] = {}
    for kind, names, endings in (("tables", tables, ("csv", "md", "tex")), ("figures", figures, ("svg", "png"))):
        for number, name in enumerate(names):
            prefix = f"{name}_" if number else ""
            paths |= {f"{prefix}{ending}": f"{folder}/{kind}/{name}.{ending}" for ending in endings}
    return paths


def input_paths(plan: Plan, settings: Any) -> list[str]:
    """Return the inputs of a job with these ``settings``: all strings in them, at any depth, that are output files of
    the plan's jobs, sorted.

    Files of a node that another node's job makes (``within``) are left out, because no job of Snakemake has them as its
    outputs.
    """
    outputs = {path for node in plan.all() if not node.within for path in node.outputs.values()}
    found, unread = set(), [settings]  # ``unread``: values in which strings are still to be looked for
    while unread:
        value = unread.pop()
        if isinstance(value, str) and value in outputs:
            found.add(value)
        elif isinstance(value, dict):
            unread += value.values()
        elif isinstance(value, list):
            unread += value
    return sorted(found)


def _with_common(plan: Plan, *more: Path, script: str, caption: str = "", **settings: Any) -> dict[str, Any]:
    """Return the ``settings`` of a job that shows something, with those that all such jobs have: the study's own
    metrics, a caption, and the digest of the job's ``script`` and of ``more`` files.

    The caption is the text of the file in resources/captions/ that has the name ``caption``, by default the script's;
    "" if there is no such file.
    """
    path = CAPTIONS / f"{caption or script}.rst"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {**settings, **own_metrics(plan), "caption": text, "code": code_digest(script, *more)}


def collect(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that collects numbers: every evaluation with the files of its numbers and
    records."""
    cases = [{**described(case), "metrics": case.metrics, "records": case.records} for case in plan.cases]
    return _with_common(plan, script="collect", caption="records", study=plan.study.name, cases=cases)


def tuning(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that writes the tables and figures of tuning.

    ``campaigns``: for each tuned method, the files of its chosen options, trials and costs, and the distances on the
    audited pairs. ``places``: for each place (scenario and setting) with tuned methods, the effects of all methods and
    the verdicts. Places with equal data are not independent, so that only the first of them is listed.
    """
    tuning_of = {node.outputs["chosen"]: node for node in plan.nodes["tune"].values()}  # by the file of chosen options
    unlearning_of = {node.outputs["logits"]: node for node in plan.nodes["unlearn"].values()}  # by the file of logits
    compared_at = {comparison.scenario.place: comparison.outputs for comparison in plan.comparisons}
    campaigns = []
    for case in plan.cases:
        # All batches of a case are unlearned with the same chosen options, so the first tells the tuning.
        place, node = case.scenario.place, unlearning_of.get(case.unlearned[0])
        tuned = node.inputs.get("tuned", []) if node else []  # no node made imported models
        for path in tuned:  # at most one
            files = {name: tuning_of[path].outputs[name] for name in ("chosen", "trials", "spec")}
            files["distances"] = compared_at[place]["distances"]
            campaigns.append({**place._asdict(), "method": case.method, **files})
    tuned_places: set[Any] = {(campaign["scenario"], campaign["setting"]) for campaign in campaigns}
    first_on: dict[str, Any] = {}  # data → the first place with them
    listed: dict[Any, dict[str, Any]] = {}
    for case in plan.cases:
        place = case.scenario.place
        if place in tuned_places and first_on.setdefault(repr(case.scenario.data), place) == place:
            facts = {**place._asdict(), "methods": [], "verdicts": compared_at[place]["verdicts"]}
            listed.setdefault(place, facts)["methods"].append({"method": case.method, "effects": case.effects})
    return _with_common(
        plan, script="tuning", study=plan.study.name, campaigns=campaigns, places=list(listed.values()),
        margins=plan.study.margins.model_dump(mode="json"), draws=plan.study.bootstrap, seed=plan.study.seed,
    )  # fmt: skip


def cost(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that writes the tables of cost.

    ``nodes``: stage, name and spec file of every node. ``cases``: for each evaluation, what identifies it and the spec
    files of the jobs that unlearned its models; not of imported models, because their cost is unknown.
    """
    nodes = [{"stage": node.stage, "node": node.name, "spec": node.outputs["spec"]} for node in plan.all()]
    unlearned = [case for case in plan.cases if not case.scenario.imported]
    cases = [{**described(case), "specs": [compared.spec(path) for path in case.unlearned]} for case in unlearned]
    return _with_common(plan, script="cost", nodes=nodes, cases=cases)


def verdicts(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that collects the verdicts of the whole study."""
    return _with_common(plan, script="verdicts", study=plan.study.name, comparisons=compared.comparisons(plan))


def table(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of the job that writes the study's table ``name``.

    Every study has the table "headline", which shows all evaluations and the verdicts. Another table shows the
    evaluations of the scenarios that the study names for it. It may set them beside published numbers, whose digest is
    a setting.
    """
    if name == "headline":
        return _with_common(
            plan, script="table", caption="headline", name=name, table=None,
            title=f"Study {plan.study.name}: what is left to find", cases=[*map(described, plan.cases)],
            comparisons=compared.comparisons(plan), margins=plan.study.margins.model_dump(mode="json"),
        )  # fmt: skip
    asked = plan.study.tables[name]  # as the study describes the table
    # The footer calls ``lower_bound`` of a metric, which is found by name: the script does not import its file.
    bounds = [registry.source_file("metrics", metric) for metric in registry.defining("metrics", "lower_bound")]
    return _with_common(
        plan, *bounds, script="table", name=name, table=asked.model_dump(mode="json"),
        cases=[described(case) for case in plan.cases if case.scenario.name in asked.scenarios],
        published=resource_digest("published/published.csv"),
    )  # fmt: skip


def meta(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that compares the metrics themselves (meta-evaluation).

    ``scenarios``: name of a scenario → its protocol and, at its first setting, its files of memberships, from which
    models are counted. Scenarios of imported models are left out.
    """
    scenarios: dict[str, dict[str, Any]] = {}
    for case in plan.cases:
        if not case.scenario.imported:
            facts = {"protocol": case.scenario.protocol.name, "splits": case.splits}
            scenarios.setdefault(case.scenario.name, facts)
    return _with_common(plan, script="meta", broken=plan.study.margins.broken_accuracy, scenarios=scenarios)


def figure(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of the job that draws the figure ``name``: what the study says of the figure, the names of
    all methods of the study, and the evaluations that the figure shows, with the files that are drawn."""
    asked = plan.study.figures[name]  # as the study describes the figure
    shown = [case for case in plan.cases if case.scenario.name in asked.scenarios]
    return _with_common(
        plan, registry.source_file("report/figures", asked.kind), script="figure", caption=asked.kind, name=name,
        figure=asked.model_dump(mode="json"), methods=list(dict.fromkeys(case.method for case in plan.cases)),
        cases=[{**described(case), "files": _drawn_from(asked.kind, case)} for case in shown],
    )  # fmt: skip


def report(plan: Plan, configfiles: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of the report: the study's evaluations and their files, its tables and figures, the settings
    of its scenarios, captions, and digests of the page's files and code.

    Parameters
    ----------
    configfiles
        The files from which the study was read, if not from the default one. They stand in the command that the page
        shows.
    """
    study, files = plan.study, [shlex.quote(readable(path)) for path in configfiles]
    command = ["audit run", *files, "--cores 1"] if len(files) < 2 else ["snakemake --cores 1 --configfile", *files]
    return {
        "study": study.name,
        "seed": study.seed,
        "bootstrap": study.bootstrap,
        **own_metrics(plan),
        "command": " ".join(command),
        "scenarios": [_settings(scenario) for scenario in study.scenarios],
        "cases": [{**described(case), "metrics": case.metrics, "scores": case.scores or ""} for case in plan.cases],
        "headline": table(plan, "headline"),
        "tables": [table(plan, name) for name in study.tables],
        "cost": cost(plan),
        "meta": meta(plan),
        "verdicts": verdicts(plan),
        "figures": [_without_files(figure(plan, name)) for name in study.figures],
        "captions": {path.stem: path.read_text(encoding="utf-8") for path in sorted(CAPTIONS.glob("*.rst"))},
        "copies": copies(plan),
        "page": [resource_digest(f"page/{name}") for name in PAGE_FILES],
        "code": code_digest("report"),
    }


def copies(plan: Plan) -> list[dict[str, Any]]:
    """Return, for every scenario at every setting, the specs of its data and memberships, in which repeated samples are
    counted. Imported models are left out."""
    # One case stands for all of its place, which have the same data and memberships.
    case_at = {case.scenario.place: case for case in plan.cases if not case.scenario.imported}
    return [
        {**place._asdict(), "data": compared.spec(case.data), "splits": [compared.spec(path) for path in case.splits]}
        for place, case in case_at.items()
    ]


def described(case: CaseFiles) -> dict[str, Any]:
    """Return what identifies one method's evaluation: scenario, axis setting, protocol, the method by its name in the
    study and in the library ("plugin"), the user's file if there is one, and ``facts`` (name → value) that tables may
    print."""
    scenario = case.scenario
    method = scenario.methods[case.method]
    # Options of methods by which rows of published tables differ.
    variant = {name: method.options[name] for name in ("variant", "forget_order") if name in method.options}
    file = method.file or method.options.get("file")
    return {
        **scenario.place._asdict(), "axes": scenario.axes, "protocol": scenario.protocol.name, "method": case.method,
        "plugin": method.name, **({"file": file} if file else {}), "facts": _facts(scenario) | variant,
    }  # fmt: skip


def own_metrics(plan: Plan) -> dict[str, Any]:
    """Return the part of a job's settings that says which metrics are the study's own, for jobs that read rows of
    metrics. Own metrics are a user's files, and metrics that the study calls by another name than the library.

    * ``own_metrics``: name in the study → (name in the library, a user's file or None).
    * ``declared``, only if the study has own metrics: name in the study → the metric's `QUANTITIES` as text, so that an
      edit of them in the file changes the settings.
    """
    items = [item for scenario in plan.study.scenarios for item in scenario.metrics.items()]
    origins = {key: (metric.name, metric.file) for key, metric in items if metric.file or key != metric.name}
    declared = {key: repr(registry.quantities(*origin, key=key)) for key, origin in origins.items()}
    return {"own_metrics": origins, **({"declared": declared} if declared else {})}


def resource_digest(resource: str) -> str:
    """Return the digest of a file in resources/, so that an edit of the file remakes what depends on it. It does not
    matter where the library is installed."""
    return source.fingerprint(CAPTIONS.parent / resource)[:10]


def code_digest(script: str, *more: Path) -> str:
    """Return the digest of a script, of what it imports, of ``more`` files and of the templates of tables, so that an
    edit of one of them makes the script's output anew."""
    parts = [code_of(script, *more), *map(resource_digest, TEMPLATES)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:10]


def _facts(scenario: Scenario) -> dict[str, Any]:
    """Return name → value of facts about one scenario: the protocol's options that are one number or text, the model's
    depth, the privacy budget (infinite ε without private training), the model's printed name, and the data set (or its
    corpus). NaN and infinity become text, because JSON does not have them."""
    options = scenario.protocol.options.items()
    facts = {name: value for name, value in options if isinstance(value, (int, float, str))}
    if "depth" in scenario.model.options:
        facts["depth"] = scenario.model.options["depth"]
    facts["epsilon"] = "inf"
    if scenario.recipe.dp is not None:
        facts |= {"epsilon": scenario.recipe.dp.epsilon, "delta": scenario.recipe.dp.delta}
    facts["model"] = scenario.model.name if scenario.imported else registry.printed(scenario.model)
    facts["dataset"] = scenario.data.options.get("corpus", scenario.data.name)
    not_in_json = [name for name, value in facts.items() if isinstance(value, float) and not math.isfinite(value)]
    return facts | {name: str(facts[name]) for name in not_in_json}


def _settings(scenario: Scenario) -> dict[str, Any]:
    """Return, for the report, what identifies a scenario and setting, and the names and options (with defaults filled
    in) of the data and the model, the recipe, and the names and options of the protocol, the methods and the attacks.
    Imported models come without data, model and recipe."""
    models = {
        "data": {"name": scenario.data.name, **scenario.data.options, **scenario.use.model_dump(mode="json")},
        "model": {"name": scenario.model.name, **scenario.model.options},
        "recipe": scenario.recipe.model_dump(mode="json"),
    }
    return {
        **scenario.place._asdict(),
        **({} if scenario.imported else models),
        "protocol": {"name": scenario.protocol.name, **scenario.protocol.options},
        "methods": {name: {"name": method.name, **method.options} for name, method in scenario.methods.items()},
        "attacks": {name: {"name": attack.name, **attack.options} for name, attack in scenario.attacks.items()},
    }


def _drawn_from(kind: str, case: CaseFiles) -> dict[str, Any]:
    """Return name → file or files of one evaluation that a figure of this ``kind`` draws. The names are those of fields
    of `CaseFiles`, which the file of the kind lists as ``DRAWN_FROM``.

    Returns {} if it lists none, if the evaluation lacks one of the files, or if the figure draws logits before
    unlearning and not all models have them.
    """
    names = registry.constant("report/figures", kind, file=None, identifier="DRAWN_FROM") or ()
    files = {name: getattr(case, name) for name in names}
    incomplete = "originals" in files and len(case.originals) != len(case.unlearned)
    return {} if incomplete or not all(files.values()) else files


def _without_files(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the ``settings`` of a figure without the files that it draws, which the report does not read."""
    cases = [{name: value for name, value in case.items() if name != "files"} for case in settings["cases"]]
    return {**settings, "cases": cases}
