"""Progress counts what is there, estimates from what was measured, and never gets in the way."""

import io
import math
import os
import time

import pytest
from unlearning_audit.artifacts.files import write_json
from unlearning_audit.workflow import interruption, progress
from unlearning_audit.workflow.forecast import rates


def specs(root, **nodes):
    return [str(root / stage / f"{label}-{i:010x}" / "spec.json") for stage, labels in nodes.items()
            for i, label in enumerate(labels)]  # fmt: skip


def finish(path, seconds):
    write_json(path, {"seconds": {"function": seconds, "process": seconds}})


def test_it_counts_and_names_what_was_finished_last(tmp_path):
    paths = specs(tmp_path, train=["clean", "noisy"], unlearn=["noisy-ssd"])
    watch = progress.Watch(paths, 0.0)
    assert not watch.look(1.0)
    finish(paths[1], 4.0)
    assert watch.look(2.0)
    assert watch.line().startswith("[1 of 3] train noisy · ")
    for path in (paths[0], paths[2]):
        finish(path, 1.0)
    assert watch.look(3.0)
    assert watch.line() == "[3 of 3] unlearn noisy-ssd"


def test_of_several_new_files_the_one_made_last_is_named_and_not_the_last_of_the_plan(tmp_path):
    paths = specs(tmp_path, train=["clean"], comparisons=["noisy"], splits=["noisy"])
    watch = progress.Watch(paths, 0.0)
    for path, made_at in zip(paths, (2, 3, 1), strict=True):
        finish(path, 1.0)
        os.utime(path, ns=(made_at, made_at))
    assert watch.look(1.0)
    assert watch.line() == "[3 of 3] comparisons noisy"


def test_the_rest_is_estimated_from_measured_seconds_and_the_speed_so_far(tmp_path):
    paths = specs(tmp_path, train=["a"] * 5)
    watch = progress.Watch(paths, 100.0)
    assert math.isnan(watch.left())
    finish(paths[0], 8.0)
    finish(paths[1], 12.0)
    watch.look(110.0)
    # 20 job-seconds in 10 seconds: two at a time; three jobs of 10 s are left
    assert watch.left() == pytest.approx(15.0)


def test_jobs_of_the_same_name_count_before_others_of_their_stage(tmp_path):
    paths = specs(tmp_path, unlearn=["ssd", "ssd", "scrub", "scrub"])
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 1.0)
    finish(paths[2], 9.0)
    watch.look(10.0)
    assert watch.left() == pytest.approx(10.0)


def test_jobs_of_other_blocks_count_before_others_of_their_stage(tmp_path):
    labels = [
        "a-swap-mlp-pairs0-npo",
        "a-ruli-mlp-shadows0to7-npo",
        "a-ruli-mlp-shadows8to15-npo",
        "a-ruli-mlp-targets0-ssd",
    ]
    paths = specs(tmp_path, unlearn=labels)
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 1.0)
    finish(paths[1], 9.0)
    watch.look(10.0)
    assert watch.costs() == pytest.approx(dict(zip(paths, [1.0, 9.0, 9.0, 5.0], strict=True)))


@pytest.mark.parametrize("at", [25.0, 45.0, 95.0])
def test_long_jobs_that_run_now_do_not_make_a_run_look_slow(tmp_path, at):
    """Ten jobs of 20 s, two at a time: 100 s. Between two ends, a job of each core is begun."""
    paths = specs(tmp_path, train=["a"] * 10)
    watch = progress.Watch(paths, 0.0, slots=2)
    for path in paths[: int(at // 20) * 2]:
        finish(path, 20.0)
    watch.look(at)
    assert watch.left() == pytest.approx(100.0 - at, abs=6.0)


def test_a_stage_with_models_is_scaled_by_its_weight_and_others_take_what_they_do_elsewhere(tmp_path):
    """That a network takes hours to train does not make its logits slow to attack."""
    paths = specs(tmp_path, train=["a"], unlearn=["a-npo"], metrics=["a"])
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 3000.0)
    watch.look(3000.0)
    seconds = rates.SECONDS
    assert watch.left() == pytest.approx(3000.0 * seconds["unlearn"] / seconds["train"] + seconds["metrics"])


def test_retraining_takes_as_long_as_training_and_says_nothing_of_other_methods(tmp_path):
    paths = specs(tmp_path, train=["a-pairs0"], unlearn=["a-pairs0-retrain", "a-pairs0-npo", "a-pairs0-ssd"])
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 100.0)
    watch.look(100.0)
    assert watch.costs()[paths[1]] == pytest.approx(100.0)
    finish(paths[1], 90.0)
    finish(paths[2], 3.0)
    watch.look(193.0)
    assert watch.costs()[paths[3]] == pytest.approx(3.0)


def test_data_and_splits_do_not_tell_how_long_models_take(tmp_path):
    paths = specs(tmp_path, data=["a"], splits=["a"], train=["a"], metrics=["a"])
    watch = progress.Watch(paths, 0.0)
    for path in paths[:2]:
        finish(path, 1.0)
    watch.look(2.0)
    assert watch.line() == "[2 of 4] splits a"
    assert watch.bar(8) == "████····"
    finish(paths[2], 3600.0)
    watch.look(3602.0)
    assert watch.line() == "[3 of 4] train a · less than 10 s left"


def test_a_study_without_models_is_estimated_from_its_first_job(tmp_path):
    paths = specs(tmp_path, external=["a"], metrics=["a"])
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 1.0)
    watch.look(1.0)
    assert watch.left() == pytest.approx(rates.SECONDS["metrics"])


def test_what_was_there_before_tells_how_long_jobs_take_but_not_how_fast_this_run_is(tmp_path):
    paths = specs(tmp_path, train=["a"] * 4)
    finish(paths[0], 100.0)
    watch = progress.Watch(paths, 0.0)
    assert watch.present == 1
    assert math.isnan(watch.left())
    finish(paths[1], 100.0)
    watch.look(50.0)
    assert watch.left() == pytest.approx(100.0)


def test_a_file_that_is_made_anew_counts_as_missing_meanwhile(tmp_path):
    paths = specs(tmp_path, train=["a", "b"])
    for path in paths:
        finish(path, 1.0)
    watch = progress.Watch(paths, 0.0)
    (tmp_path / "train" / "b-0000000001" / "spec.json").unlink()
    assert watch.look(1.0)
    assert len(watch.ready) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"seconds": null}', '{"seconds": {"function": "x"}}'])
def test_a_damaged_spec_counts_as_done_in_no_time(tmp_path, content):
    paths = specs(tmp_path, train=["a"])
    watch = progress.Watch(paths, 0.0)
    path = tmp_path / "train" / "a-0000000000" / "spec.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    watch.look(1.0)
    assert watch.line() == "[1 of 1] train a"


def test_many_jobs_are_looked_through_quickly(tmp_path):
    paths = specs(tmp_path, train=["a"] * 3000)
    watch = progress.Watch(paths, 0.0)
    finish(paths[0], 1.0)
    started = time.process_time()
    watch.look(1.0)
    watch.line()
    assert time.process_time() - started < 0.5


def test_the_watch_prints_plain_lines_from_a_daemon(tmp_path):
    paths, stream = specs(tmp_path, train=["a", "b"]), io.StringIO()
    thread = progress.watch(paths, stream=stream, interval=0.01)
    assert thread.daemon
    for path in paths:
        finish(path, 1.0)
    deadline = time.monotonic() + 10
    while "[2 of 2]" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "2 of 2 parts are to be made."
    assert lines[-1].startswith("[2 of 2] train ")
    assert not any(character in stream.getvalue() for character in "\r\x1b")


def test_a_stream_that_is_closed_ends_the_watch_silently(tmp_path):
    stream = io.StringIO()
    stream.close()
    thread = progress.watch(specs(tmp_path, train=["a"]), stream=stream, interval=0.01)
    thread.join(60)
    assert not thread.is_alive()


def test_a_live_line_says_what_runs_now_by_the_users_names_and_is_written_over(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    paths, stream = specs(tmp_path, train=["clean"], unlearn=["clean-classic"]), Terminal()
    names = dict(zip(paths, ("for clean", "mine in clean"), strict=True))
    progress.watch(paths, names=names, running=lambda: paths[1:], stream=stream, interval=0.01)
    finish(paths[0], 4.0)
    deadline = time.monotonic() + 10
    while "1 of 2 jobs" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "\r\x1b[K" in stream.getvalue()
    assert "unlearn mine in clean" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    finish(paths[1], 1.0)
    while stream.getvalue()[-1] != "\n" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.getvalue().endswith("2 of 2 jobs · unlearn mine in clean\n")


@pytest.mark.parametrize("width", [20, 40, 200])
def test_a_live_line_is_no_wider_than_the_terminal(tmp_path, width):
    paths = specs(tmp_path, train=["clean"])
    watch = progress.Watch(paths, 0.0, 0, {paths[0]: "for clean, noisy and 12 more"})
    assert len(watch.live(paths, width)) < width


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "less than 10 s"), (38, "about 40 s"), (120, "about 2 min"), (3500, "about 58 min"), (9000, "about 2.5 h")],
)
def test_spoken_times(seconds, text):
    assert progress.spoken(seconds) == text


def test_the_bar_is_as_full_as_the_work_is_done_and_is_for_terminals(tmp_path):
    watch = progress.Watch([], 0.0)
    assert watch.bar(4) == "····"
    paths = [f"results/train/a-{number:010x}/spec.json" for number in range(4)]
    watch = progress.Watch(paths, 0.0)
    watch.ready, watch.measured = {paths[0]}, {paths[0]: 2.0}
    assert watch.bar(8) == "██······"
    watch.ready, watch.measured = set(paths), dict.fromkeys(paths, 2.0)
    assert watch.bar(8) == "█" * 8


def test_nothing_is_said_of_a_run_that_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(interruption, "noticed", lambda: True)
    stream = io.StringIO()
    thread = progress.watch([str(tmp_path / "spec.json")], stream=stream, interval=0.01)
    thread.join(60)
    assert not thread.is_alive()
    assert stream.getvalue() == "1 of 1 parts are to be made.\n"
