"""Call the function of a stage with the values that a rule names, and record time and memory in spec.json."""

import logging
import sys
import traceback
from contextlib import suppress
from typing import Any

import library  # noqa: F401 (the library is found by it)

from unlearning_audit.plugins.guard import MachineError, of_machine
from unlearning_audit.store.files import seal, unwritable, write_spec
from unlearning_audit.workflow.jobs import arguments_of, function_of, make_part, run_and_record


def run(job: Any) -> None:
    """Run the function of the stage that the rule's params name, in Snakemake's ``job``.

    Each argument is filled by its name from the rule's inputs, outputs, params and wildcards; ``**files`` takes all
    inputs.

    If the rule has an output ``spec``, it is first checked that the user's files have not changed since the run was
    planned. The spec is written last: settings, inputs, checksums of the other outputs, package versions, device,
    seconds, memory, and what the function returned. Further results that the plan assigns to this job (``parts``) are
    computed just before the spec is written; if one fails, its error is printed, and the next run gives it a job of its
    own. Without a spec, a file beside each output holds its checksum.

    If anything else fails, the traceback is written to the log, one sentence is printed, and the process ends with
    status 1. A ValueError is an error that the user can correct; other errors are reported as a fault of the machine or
    a defect.
    """
    try:
        log = open(job.log[0], "w", buffering=1) if job.log else sys.stderr  # noqa: SIM115 (open until the process ends)
    except OSError as error:
        print(f"\n{job.rule}: {unwritable(job.log[0], error)}\n", file=sys.stderr, flush=True)
        sys.exit(1)
    sys.stdout = sys.stderr = log
    # By force, because an imported library may have configured logging already.
    logging.basicConfig(level=logging.INFO, stream=log, format="%(asctime)s %(message)s", force=True)
    params, outputs = dict(job.params.items()), dict(job.output.items())
    place = params.get("place", {})
    # Snakemake does not know inputs that another node's job makes besides its own. Then the plan lists all inputs.
    inputs = place.get("inputs") or dict(job.input.items())
    try:
        if "spec" in outputs:
            spec = run_and_record({**params, "inputs": inputs, "outputs": outputs, "place": place})
            for part in place.get("parts", {}).values():
                try:
                    make_part(part)
                except Exception as error:  # the other results are kept: the part gets a job of its own
                    traceback.print_exc(file=log)
                    print(f"\n{part['stage']}: {error} (more in {job.log[0]})\n", file=sys.__stderr__, flush=True)
            write_spec(outputs["spec"], spec)
        else:
            function = function_of(params["stage"])
            function(**arguments_of(function, inputs, dict(job.wildcards.items()) | params | outputs))
            for path in job.output:
                seal(path)
    except Exception as error:
        expected = isinstance(error, ValueError)
        with suppress(OSError):  # the disk may be full
            traceback.print_exc(file=log)
        # The log may never be seen; the sentence belongs on the terminal as well.
        machine = isinstance(error, MachineError) or of_machine(error)
        cause = "a fault of the machine; more" if machine else "a defect; traceback"
        sentence = str(error) if expected else f"{type(error).__name__}: {error}"
        if machine or not expected:
            sentence += f" ({cause} in {job.log[0]})"
        print(f"\n{job.rule}: {sentence}\n", file=sys.__stderr__, flush=True)
        sys.exit(1)


if hasattr(sys.modules["__main__"], "snakemake"):  # Snakemake puts the job into the script that it starts
    run(sys.modules["__main__"].snakemake)
