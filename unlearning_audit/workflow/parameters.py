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
from unlearning_audit.workflow.nodes import CaseFiles, Plan

CAPTIONS = unlearning_audit.ROOT / "resources" / "captions"
#: Templates of tables, in resources/.
TEMPLATES = ("tables/sheet.md.jinja", "tables/sheet.tex.jinja")
#: Files of the page, in resources/page/.
PAGE_FILES = ("page.html", "page.css", "page.js", "vendor/datatables.min.js")


def shown(tables: Iterable[str], figures: Iterable[str], folder: str) -> dict[str, str]:
    """Return name → path of the files that the scripts of ``tables`` and ``figures`` (names) write in a study's
    ``folder``.

    The files of the first table and the first figure are named by their endings, such as "csv"; those of others by name
    and ending, such as "cost_csv".
    """
    return {
        f"{name}_{ending}" if i else ending: f"{folder}/{kind}/{name}.{ending}"
        for kind, names, endings in (("tables", tables, ("csv", "md", "tex")), ("figures", figures, ("svg", "png")))
        for i, name in enumerate(names)
        for ending in endings
    }


def files(plan: Plan, settings: Any) -> list[str]:
    """Return the inputs of a job with these ``settings``: all strings in them, at any depth, that are output files of
    the plan's jobs, sorted.

    Files of a node that another node's job makes (``within``) are left out, because no job of Snakemake has them as its
    outputs.
    """
    outputs = {path for node in plan.all() if not node.within for path in node.outputs.values()}
    paths, todo = set(), [settings]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            paths |= {value} & outputs
        elif isinstance(value, (dict, list)):
            todo += value.values() if isinstance(value, dict) else value
    return sorted(paths)


def _order(plan: Plan, kind: str, script: str, *more: Path, **settings: Any) -> dict[str, Any]:
    """Return the ``settings`` of a job that shows something, with the study's own metrics, the caption of its ``kind``
    and the digest of its ``script`` and of ``more`` files."""
    path = CAPTIONS / f"{kind}.rst"
    caption = path.read_text(encoding="utf-8") if path.exists() else ""
    return {**settings, **own_metrics(plan), "caption": caption, "code": code(script, *more)}


def collect(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that collects numbers: every evaluation with the files of its numbers and records,
    the study's own metrics, the caption and the digest of code."""
    cases = [{**described(case), "metrics": case.metrics, "records": case.records} for case in plan.cases]
    return _order(plan, "records", "collect", study=plan.study.name, cases=cases)


def tuning(plan: Plan) -> dict[str, Any]:
    """Return the settings of the table of tuning.

    ``campaigns``: for each tuned method, the files of its chosen options, trials and costs, and the distances on the
    audited pairs. ``places``: for each scenario with tuned methods, the effects of all methods and the verdicts;
    of scenarios on equal data only the first, because they are not independent.
    """
    tuning_of = {node.outputs["chosen"]: node for node in plan.nodes["tune"].values()}  # by the file of chosen options
    unlearning_of = {node.outputs["logits"]: node for node in plan.nodes["unlearn"].values()}  # by the file of logits
    judged = {comparison.scenario.place: comparison.outputs for comparison in plan.comparisons}
    campaigns = []
    for case in plan.cases:
        node, where = unlearning_of.get(case.unlearned[0]), case.scenario.place  # no node made imported models
        for path in node.inputs.get("tuned", []) if node else []:
            files = {name: tuning_of[path].outputs[name] for name in ("chosen", "trials", "spec")}
            files["distances"] = judged[where]["distances"]
            campaigns.append({**where._asdict(), "method": case.method, **files})
    tuned = {(campaign["scenario"], campaign["setting"]) for campaign in campaigns}
    first_on: dict[str, Any] = {}  # data → the first scenario and setting on them
    effects: dict[Any, list[dict[str, str]]] = {}
    for case in plan.cases:
        where = case.scenario.place
        if where in tuned and first_on.setdefault(repr(case.scenario.data), where) == where:
            effects.setdefault(where, []).append({"method": case.method, "effects": case.effects})
    listed = [{**at._asdict(), "methods": effects[at], "verdicts": judged[at]["verdicts"]} for at in effects]
    return _order(
        plan, "tuning", "tuning", study=plan.study.name, campaigns=campaigns, places=listed,
        margins=plan.study.margins.model_dump(mode="json"), draws=plan.study.bootstrap, seed=plan.study.seed,
    )  # fmt: skip


def cost(plan: Plan) -> dict[str, Any]:
    """Return the settings of the cost table: every node with its spec, and for each evaluation the specs of its
    unlearning. Imported models are left out, because their cost is unknown."""
    nodes = [{"stage": node.stage, "node": node.name, "spec": node.outputs["spec"]} for node in plan.all()]
    unlearned = [case for case in plan.cases if not _imported(case.scenario)]
    cases = [{**described(case), "specs": [compared.spec(path) for path in case.unlearned]} for case in unlearned]
    return _order(plan, "cost", "cost", nodes=nodes, cases=cases)


def verdicts(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that collects the verdicts of the whole study."""
    return _order(plan, "verdicts", "verdicts", study=plan.study.name, comparisons=compared.comparisons(plan))


def table(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of the study's table ``name``: the evaluations that it shows, the caption, published numbers
    and the digest of code. Every study has the table "headline"."""
    if name == "headline":
        return _order(
            plan, name, "table", name=name, title=f"Study {plan.study.name}: what is left to find", table=None,
            cases=[*map(described, plan.cases)], comparisons=compared.comparisons(plan),
            margins=plan.study.margins.model_dump(mode="json"),
        )  # fmt: skip
    wish = plan.study.tables[name]
    # The footer calls ``lower_bound`` of a metric, which is found by name: the script does not import its file.
    bounds = [registry.source_file("metrics", metric) for metric in registry.defining("metrics", "lower_bound")]
    return _order(
        plan, "table", "table", *bounds, name=name, table=wish.model_dump(mode="json"),
        cases=[described(case) for case in plan.cases if case.scenario.name in wish.scenarios],
        published=content("published/published.csv"),
    )  # fmt: skip


def meta(plan: Plan) -> dict[str, Any]:
    """Return the settings of the job that compares the metrics themselves (meta-evaluation).

    ``scenarios``: scenario's name → its protocol and files of memberships, at its first setting, from which models are
    counted. Imported models are left out.
    """
    scenarios: dict[str, dict[str, Any]] = {}
    for case in plan.cases:
        if not _imported(case.scenario):
            facts = {"protocol": case.scenario.protocol.name, "splits": case.splits}
            scenarios.setdefault(case.scenario.name, facts)
    return _order(plan, "meta", "meta", broken=plan.study.margins.broken_accuracy, scenarios=scenarios)


def figure(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of one figure of the study: the evaluations that it shows with the files that are drawn, the
    names of all methods, the caption and the digest of code."""
    wish = plan.study.figures[name]
    shown = [case for case in plan.cases if case.scenario.name in wish.scenarios]
    return _order(
        plan, wish.kind, "figure", registry.source_file("report/figures", wish.kind), name=name,
        figure=wish.model_dump(mode="json"), methods=list(dict.fromkeys(case.method for case in plan.cases)),
        cases=[{**described(case), "files": _drawn_from(wish.kind, case)} for case in shown],
    )  # fmt: skip


def report(plan: Plan, configfiles: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of the report: the study's evaluations and their files, its tables and figures, the settings
    of its scenarios, captions, and digests of the page's files and code.

    ``configfiles``: the files from which the study was read, if not from the default one.
    """
    study, named = plan.study, [f"--configfile {shlex.quote(readable(path))}" for path in configfiles]
    return {
        "study": study.name,
        "seed": study.seed,
        "bootstrap": study.bootstrap,
        **own_metrics(plan),
        "command": " ".join(["snakemake --cores 1", *named]),
        "scenarios": [_settings(scenario) for scenario in study.scenarios],
        "cases": [{**described(c), "metrics": c.metrics, "scores": c.scores or ""} for c in plan.cases],
        "headline": table(plan, "headline"),
        "tables": [table(plan, name) for name in study.tables],
        "cost": cost(plan),
        "meta": meta(plan),
        "verdicts": verdicts(plan),
        "figures": [_without_files(figure(plan, name)) for name in study.figures],
        "captions": {path.stem: path.read_text(encoding="utf-8") for path in sorted(CAPTIONS.glob("*.rst"))},
        "copies": copies(plan),
        "page": [content(f"page/{name}") for name in PAGE_FILES],
        "code": code("report"),
    }


def copies(plan: Plan) -> list[dict[str, Any]]:
    """Return, for every scenario at every setting, the specs of its data and memberships, in which repeated samples are
    counted. Imported models are left out."""
    places: dict[Any, dict[str, Any]] = {}
    for case in plan.cases:
        if not _imported(case.scenario):
            specs = {"data": compared.spec(case.data), "splits": [compared.spec(path) for path in case.splits]}
            places.setdefault(case.scenario.place, {**case.scenario.place._asdict(), **specs})
    return list(places.values())


def described(case: CaseFiles) -> dict[str, Any]:
    """Return what identifies one method's evaluation: scenario, axis setting, protocol and method, the user's file if
    there is one, and ``facts`` (name → value) that tables may print."""
    scenario = case.scenario
    method = scenario.methods[case.method]
    variant = {name: method.options[name] for name in ("variant", "forget_order") if name in method.options}
    file = method.file or method.options.get("file")
    return {
        **scenario.place._asdict(), "axes": scenario.axes, "protocol": scenario.protocol.name, "method": case.method,
        "plugin": method.name, **({"file": file} if file else {}), "facts": _facts(scenario) | variant,
    }  # fmt: skip


def own_metrics(plan: Plan) -> dict[str, Any]:
    """Return what jobs that read rows of metrics have to know of the study's own metrics, as a part of their settings.

    Own metrics are a user's files, and metrics that the study calls by another name than the library. The part has:

    * ``own_metrics``: name in the study → (name in the library, a user's file or None); {} if there are none.
    * ``declared``, unless that is empty: name in the study → the metric's `QUANTITIES` as text, so that an edit of
      the file changes the settings.
    """
    items = [item for scenario in plan.study.scenarios for item in scenario.metrics.items()]
    origins = {key: (metric.name, metric.file) for key, metric in items if metric.file or key != metric.name}
    declared = {key: repr(registry.quantities(*origin, key=key)) for key, origin in origins.items()}
    return {"own_metrics": origins, **({"declared": declared} if declared else {})}


def content(resource: str) -> str:
    """Return the digest of a file in resources/. An edit of the file then remakes what depends on it, wherever the file
    lies."""
    return source.fingerprint(CAPTIONS.parent / resource)[:10]


def code(script: str, *more: Path) -> str:
    """Return the digest of a script, its imports and the templates of tables. An edit then redraws what depends on
    them."""
    parts = [source.digest(source.SCRIPTS / f"{script}.py", *more), *map(content, TEMPLATES)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:10]


def _facts(scenario: Scenario) -> dict[str, Any]:
    """Return fact's name → value for one scenario: protocol options, the model's printed name and depth, the data set
    (or its corpus), and the privacy budget. NaN and infinity become text, because JSON does not have them."""
    privacy: dict[str, Any] = {"epsilon": "inf"}
    if scenario.recipe.dp is not None:
        privacy = {"epsilon": scenario.recipe.dp.epsilon, "delta": scenario.recipe.dp.delta}
    options = {k: v for k, v in scenario.protocol.options.items() if isinstance(v, (int, float, str))}
    depth = {name: value for name, value in scenario.model.options.items() if name == "depth"}
    model = scenario.model.name if _imported(scenario) else registry.printed(scenario.model)
    facts = {**options, **depth, **privacy, "model": model}
    facts["dataset"] = scenario.data.options.get("corpus", scenario.data.name)
    return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}


def _settings(scenario: Scenario) -> dict[str, Any]:
    """Return the settings of a scenario's protocol, methods and attacks, with defaults filled in, for the report;
    unless its models are imported, also those of data, model and recipe."""
    models = {
        "data": {"name": scenario.data.name, **scenario.data.options, **scenario.use.model_dump(mode="json")},
        "model": {"name": scenario.model.name, **scenario.model.options},
        "recipe": scenario.recipe.model_dump(mode="json"),
    }
    return {
        **scenario.place._asdict(),
        **({} if _imported(scenario) else models),
        "protocol": {"name": scenario.protocol.name, **scenario.protocol.options},
        "methods": {name: {"name": m.name, **m.options} for name, m in scenario.methods.items()},
        "attacks": {name: {"name": a.name, **a.options} for name, a in scenario.attacks.items()},
    }


def _imported(scenario: Scenario) -> bool:
    """Return whether a scenario's models are imported, so that their making and its cost are unknown."""
    return registry.offers(scenario.protocol, "imported")


def _drawn_from(kind: str, case: CaseFiles) -> dict[str, Any]:
    """Return role → file or files that the figures of this ``kind`` draw, from one evaluation.

    Returns {} if the evaluation lacks one of the files, or has logits before unlearning for some models only.
    """
    roles = registry.constant("report/figures", kind, None, "DRAWN_FROM") or ()
    files = {role: getattr(case, role) for role in roles}
    some_only = len(files.get("originals", case.unlearned)) != len(case.unlearned)
    return {} if some_only or not all(files.values()) else files


def _without_files(wish: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a figure without the files that it draws, which the report does not read."""
    return {**wish, "cases": [{k: v for k, v in case.items() if k != "files"} for case in wish["cases"]]}
