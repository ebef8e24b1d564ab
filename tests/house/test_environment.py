"""What is installed where: ranges, the exact versions of development, and the environments of the stages."""

import ast
import functools
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from unlearning_audit.plugins import registry, source
from unlearning_audit.study.schema import DISPLAYS, STAGES
from unlearning_audit.workflow import jobs, versions

ROOT = source.SCRIPTS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RANGES = {
    "library": [Requirement(text) for text in PROJECT["project"]["dependencies"]],
    "workflow": [Requirement(text) for text in PROJECT["project"]["optional-dependencies"]["workflow"]],
}
#: Of the environment of development.
PINS = {
    pin.name: str(pin.specifier).removeprefix("==")
    for pin in map(Requirement, PROJECT["tool"]["uv"]["constraint-dependencies"])
}
ENVIRONMENTS = {path.name: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "envs").glob("*.yaml"))}

#: Module → the distributions that hold it.
PROVIDERS = metadata.packages_distributions()

#: What a script loads by name.
LOADED = {"data": ("data",), "splits": ("protocols",), "train": ("models",), "signals": ("models",),
          "unlearn": ("models", "methods"), "metrics": ("attacks", "metrics"), "selection": ("metrics",)}  # fmt: skip


def pins(environment):
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    return dict(pin.split("==") for pin in pip)


def scripts():
    """(stage, environment) of everything that a rule runs."""
    (scoring,) = re.findall(r"^SCORING = (.*)$", (ROOT / "rules" / "stages.smk").read_text(), re.MULTILINE)
    names = {*STAGES, *DISPLAYS, "table", "figure", "report", "failures"}
    training = set(STAGES) - set(ast.literal_eval(scoring))
    return [(name, "train.yaml" if name in training else "score.yaml") for name in sorted(names)]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_pins_what_the_project_pins(name):
    environment = ENVIRONMENTS[name]
    assert pins(environment).items() <= PINS.items()
    (python,) = (entry for entry in environment["dependencies"] if str(entry).startswith("python="))
    bounds = PROJECT["project"]["requires-python"]
    lowest, above = (tuple(map(int, bound.split("."))) for bound in re.fullmatch(r">=(.+),<(.+)", bounds).groups())
    assert lowest <= tuple(map(int, python.removeprefix("python=").split("."))) < above


@pytest.mark.parametrize(("script", "environment"), scripts())
def test_an_environment_has_what_its_scripts_import(script, environment):
    files = [source.SCRIPTS / "job.py", jobs.file_of(script)]
    files += [path for kind in LOADED.get(script, ()) for path in (registry.LIBRARY / kind).glob("*.py")]
    files += (registry.LIBRARY / "report" / "figures").glob("*.py") if script == "figure" else ()
    imported = {name.split(".")[0] for path in source.modules(*files) for name in imports(path)}
    local = {path.stem for path in source.SCRIPTS.glob("*.py")} | {"unlearning_audit"}
    external = imported - local - set(sys.stdlib_module_names)
    # Planning alone reads YAML and Snakemake, in the environment that Snakemake itself runs in.
    # Adapters of peft are read where somebody has it, and refused with a sentence elsewhere.
    elsewhere = {"yaml", "snakemake", "peft"}
    distributions = {PROVIDERS[name][0].lower().replace("_", "-") for name in external - elsewhere}
    pinned = set(pins(ENVIRONMENTS[environment]))
    brought = {requirement for name in pinned for requirement in requirements(name)}
    assert distributions <= pinned | brought


@functools.cache
def imports(path: Path) -> set[str]:
    """Names of the modules that a file imports, anywhere in it but for type checkers."""
    tree = ast.parse(path.read_bytes())
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    skipped = {id(part) for node in tests for part in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def requirements(name: str) -> set[str]:
    """Distributions that another one always brings along."""
    texts = [text for text in metadata.requires(name) or () if "extra ==" not in text]
    return {re.match(r"[\w.-]+", text)[0].lower().replace("_", "-") for text in texts}


def test_all_that_is_installed_is_pinned():
    installed = {re.sub("[_.]", "-", part.name.lower()): part.version for part in metadata.distributions()}
    del installed["unlearning-audit"]
    assert installed.items() <= PINS.items()


@pytest.mark.parametrize("requirement", [*RANGES["library"], *RANGES["workflow"]], ids=lambda one: one.name)
def test_a_range_has_a_lower_bound_and_holds_the_version_of_development(requirement):
    assert any(bound.operator == ">=" for bound in requirement.specifier)
    assert requirement.specifier.contains(PINS[requirement.name])


def test_the_library_imports_what_it_declares():
    rooms = ("attacks", "comparisons", "evaluation", "metrics", "plugins", "protocols", "readers", "stats", "store")
    imported = {name.split(".")[0] for room in rooms for path in (registry.LIBRARY / room).glob("*.py")
                for name in imports(path)} - set(sys.stdlib_module_names) - {"unlearning_audit"}  # fmt: skip
    declared = {one.name for one in RANGES["library"]}
    brought = {requirement for name in declared for requirement in requirements(name)}
    # For single attacks, and for the words of language models, of which a message says what lacks.
    optional = {"adversarial-robustness-toolbox", "torch", "rouge-score", "tokenizers"}
    assert {PROVIDERS[name][0].lower().replace("_", "-") for name in imported} <= declared | brought | optional


def test_versions_that_a_spec_records_are_those_of_the_project():
    assert set(versions.PACKAGES) <= set(PINS)
    assert {name: PINS[name] for name in versions.PACKAGES} == versions.VERSIONS
