"""Snakemake's plan is the same with our changes as without them, and each of them does what it says."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from snakemake.api import SnakemakeApi  # noqa: F401 (other modules of Snakemake cannot be imported first)
from snakemake.dag import ScriptProcessor
from snakemake.jobs import Job
from snakemake.settings.enums import Quietness
from unlearning_audit.plugins import source
from unlearning_audit.workflow import snakemake_plan_changes

from plan_cases import BASE

#: Plans a study and prints its graph: every job with all that it is given and the files that it reads of others.
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from snakemake import cli
from snakemake.dag import DAG
from unlearning_audit.workflow import snakemake_changes

if sys.argv[2] == "plain":
    snakemake_changes.checked = lambda: False
built, by_itself = [], DAG.__init__
DAG.__init__ = lambda self, *how, **options: built.append(self) or by_itself(self, *how, **options)
parser, args = cli.parse_args(["-s", sys.argv[3], "--dry-run", "--quiet", "--configfile", "study.yaml"])
cli.args_to_api(args, parser)
dag = built[0]
name = lambda job: f"{job.rule.name} {sorted(map(str, job.output))}"
edges = {name(job): {name(of): sorted(map(str, files)) for of, files in some.items()}
         for job, some in dag.dependencies.items()}
back = {name(of): {name(job): sorted(map(str, files)) for job, files in some.items()}
        for of, some in dag.depending.items() if some}
jobs = {name(job): [list(map(str, job.input)), {k: str(v) for k, v in job.input.items()}, list(map(str, job.log)),
                    {k: str(v) for k, v in job.params.items()}, str(job.conda_env_spec and job.conda_env_spec.file),
                    {k: str(v) for k, v in job.resources.items()},
                    [sorted(file.flags) for file in (*job.input, *job.output)]] for job in dag.jobs}
print(json.dumps([jobs, edges, back]))
"""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """What the driver says with our changes and without."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "study.yaml").write_text(yaml.safe_dump(BASE))
    snakefile = source.SCRIPTS.parent / "Snakefile"

    def graph(how: str) -> list:
        run = subprocess.run(
            [sys.executable, "-c", DRIVER, source.SCRIPTS, how, snakefile],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(run.stdout.splitlines()[-1])

    return graph("changed"), graph("plain")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3), ids=["jobs", "edges", "the same from their other end"])
def test_the_plan_is_the_same(graphs, part):
    changed, plain = (graph[part] for graph in graphs)
    assert changed
    assert changed == plain


@pytest.mark.parametrize(
    ("scripts", "looks"),
    [(["a.py", "a.py", "b.py", "a.py"], ["a.py", "b.py"]), (["{wildcards.a}.py"] * 2, ["{wildcards.a}.py"] * 2)],
)
def test_a_script_is_looked_for_once_for_each_rule(monkeypatch, scripts, looks):
    lookups = []
    monkeypatch.setattr(ScriptProcessor, "process_job", lambda self, job: lookups.append(job.rule.script))
    snakemake_plan_changes.look_for_scripts_once()
    for _ in range(2):  # every plan looks anew
        processor = ScriptProcessor(dag=None)
        for script in scripts:
            processor.process_job(SimpleNamespace(rule=SimpleNamespace(name=f"rule of {script}", script=script)))
    assert lookups == looks * 2


@pytest.mark.parametrize(
    ("quiet", "handlers", "checkpoint", "descriptions"),
    [({"RULES"}, {}, False, 0), ({"RULES", "PROGRESS"}, {}, False, 0), ({"PROGRESS"}, {}, False, 1),
     (set(), {}, False, 1), (None, {}, False, 1), ({"RULES"}, {"somebody": 1}, False, 1), ({"RULES"}, {}, True, 1)],
)  # fmt: skip
def test_jobs_are_described_where_somebody_reads_it(monkeypatch, quiet, handlers, checkpoint, descriptions):
    heard = []
    monkeypatch.setattr(Job, "log_info", lambda self, indent=False: heard.append(indent))
    snakemake_plan_changes.word_only_what_is_said()
    output = SimpleNamespace(quiet=quiet and {Quietness[word] for word in quiet}, log_handler_settings=handlers)
    dag = SimpleNamespace(workflow=SimpleNamespace(output_settings=output))
    Job.log_info(SimpleNamespace(dag=dag, rule=SimpleNamespace(is_checkpoint=checkpoint)), indent=True)
    assert heard == [True] * descriptions
