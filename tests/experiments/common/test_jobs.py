"""Jobs are done once, found again, and go on where they stopped."""

import json
from pathlib import Path

from voronaut.experiments.common import jobs


def counting(calls: list[int]) -> jobs.Job:
    def work(n: int) -> dict[str, int]:
        calls.append(n)
        return {"twice": 2 * n}

    return jobs.Job("part", "one", work, {"n": 3}, 1.0)


def test_a_job_is_done_once_and_found_again(tmp_path: Path) -> None:
    calls: list[int] = []
    job = counting(calls)
    assert jobs.status([job], tmp_path).splitlines()[0].split() == ["part", "0", "of", "1"]
    assert jobs.run([job], tmp_path, say=lambda text: None) and jobs.run([job], tmp_path, say=lambda text: None)
    assert calls == [3] and jobs.collect([job], tmp_path) == {"part/one": {"twice": 6}}
    assert jobs.status([job], tmp_path).endswith("all is done")
    assert {"given", "result", "seconds", "machine"} == set(json.loads((tmp_path / "part/one.json").read_text()))


def test_damaged_and_foreign_files_are_named_and_made_again(tmp_path: Path) -> None:
    job = counting([])
    path = jobs.write(job, tmp_path, {"twice": 6}, 1.0)
    for text, words in (("{", "damaged"), ('{"given": {"n": 4}, "result": {}}', "another experiment")):
        path.write_text(text)
        assert words in jobs.status([job], tmp_path)
        jobs.run([job], tmp_path, say=lambda text: None)
        assert jobs.find(job, tmp_path).result == {"twice": 6}


def twice(n: int) -> dict[str, int]:
    return {"twice": 2 * n}


def test_jobs_side_by_side_are_all_done(tmp_path: Path) -> None:
    many = [jobs.Job("part", str(n), twice, {"n": n}, 1.0) for n in range(3)]
    assert jobs.run(many, tmp_path, processes=2, say=lambda text: None)
    assert jobs.collect(many, tmp_path) == {f"part/{n}": {"twice": 2 * n} for n in range(3)}
    assert not jobs.run([*many, counting([])], tmp_path, processes=2, budget=0.0, say=lambda text: None)


def test_no_job_begins_without_time(tmp_path: Path) -> None:
    calls: list[int] = []
    assert not jobs.run([counting(calls)], tmp_path, budget=0.0, say=lambda text: None)
    assert calls == []
