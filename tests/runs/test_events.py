"""Events are appended, survive a crash, and tell each step as it was done last."""

from rtrain.runs.events import Event, EventLog, read_events


def report(log, *steps):
    for step in steps:
        log.append(Event.at(0.0, step=step, epoch=0, metrics={"a": step}))


def steps(path):
    return [event.step for event in read_events(path)]


def test_steps_that_are_done_again_are_told_once(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10, 20, 30, 40)
    log.go_back(20)
    report(log, 30, 40, 50)
    log.go_back(40)
    report(log, 50, 60)
    log.close()
    assert steps(path) == [10, 20, 30, 40, 50, 60]
    assert len(path.read_text().splitlines()) == 11


def test_going_back_twice_to_an_earlier_step_drops_what_is_between(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10, 20, 30)
    log.go_back(20)
    report(log, 30)
    log.go_back(10)
    report(log, 20)
    log.close()
    assert steps(path) == [10, 20]


def test_a_torn_line_is_left_out_and_cut_off_when_the_run_goes_on(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10)
    log.close()
    with path.open("a") as file:
        file.write('{"step":20,"ep')
    assert steps(path) == [10]
    log = EventLog(path)
    report(log, 20)
    log.close()
    assert steps(path) == [10, 20]
    assert len(path.read_text().splitlines()) == 2
