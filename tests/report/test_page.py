"""The page as text: the data inside is what was read, nothing in it can break out, nothing is fetched."""

import base64
import hashlib
import json
import re
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.report import toys
from voronaut.cli import main
from voronaut.experiments.common import results
from voronaut.report import command, content, page, report

pytest.importorskip("plotly", reason="plotly is not installed (pip install 'voronaut[report]')")
EVIL = "<img src=x onerror=window.hacked=1>"
WORSE = (
    "</script><script>window.hacked=1</script>{{ 7 * 7 }}<!-- <a href='javascript:window.hacked=1'>x</a> \u2028 &amp;"
)


class Tags(HTMLParser):
    """All tags of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.lasttag = ""

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.scripts[-1] += data


def build(*folders: Path) -> tuple[dict[str, Any], str]:
    """What was read, and the page of it."""
    whole = content.content(command.read(list(folders), 2e9))
    return whole, page.page(whole, datetime(2026, 1, 2, tzinfo=UTC))


def hostile(folder: Path) -> Path:
    """An experiment in which every name tries to become a tag."""
    made = toys.experiment(folder / EVIL, task=f"gym:{WORSE}", labels=("kme", f"none-{EVIL}"), seeds=2, rollouts=3)
    (made / "notes.txt").write_text(WORSE + "\n")
    curve = {key: [1.0] for key in results.CURVES} | {"env_steps": [100]}
    about = {"task": WORSE, "threshold": WORSE, "method": WORSE, "seed": 0, "curve": curve, "params": {WORSE: WORSE},
             "notes": [WORSE], "machine": {WORSE: WORSE}, "last_metrics": {WORSE: 1.0}}  # fmt: skip
    results.write(made.parent / "evil.json.gz", about)
    (made.parent / f"{EVIL}.json.gz").write_bytes(b"broken")
    return made.parent


def test_the_data_in_the_page_is_what_was_read(tmp_path: Path) -> None:
    whole, text = build(toys.experiment(tmp_path / "toy"))
    data = json.loads(Tags(text).scripts[0])
    assert data == json.loads(json.dumps({key: whole[key] for key in ("tasks", "methods", "maps", "costs")}))
    curve = data["tasks"][0]["panels"]["extrinsic_return"]["curves"]["kme"]
    assert curve["x"] == [100 * n for n in range(2, 9)] and curve["mean"] == [10 * n + 0.5 for n in range(2, 9)]
    assert list(data["methods"]) == ["none", "kme"] and len(data["maps"]) == 4
    assert data["costs"][0] | {"share": ""} == {
        "task": "gym:Toy-v0", "method": "kme", "collect": 0.1, "bonus": 0.01, "learn": 0.05, "share": ""
    }  # fmt: skip
    for said in ("finished, 8 rollouts", "80.5 (80 to 81)", "clusters 6, balance 0.001", "2026-01-02 00:00 UTC"):
        assert said in text


def test_partial_runs_and_several_tasks(tmp_path: Path) -> None:
    one = toys.experiment(tmp_path / "one", done=2, rollouts=10)
    with (one / "kme-0" / "progress.jsonl").open("a") as file:
        file.write('{"env_steps": 30')
    two = toys.experiment(tmp_path / "two", task="gym:Other-v0", maps=False, seeds=1)
    whole, text = build(one, two)
    assert [task["title"] for task in whole["tasks"]] == ["gym:Toy-v0", "gym:Other-v0"]
    assert "stopped, 2 of 10 rollouts" in text and "Stopped early" in text and "80%" in text
    assert sorted(len(drawn["frames"]) for drawn in whole["maps"]) == [1, 2, 2, 2, 2]


def test_both_policies_of_a_pair_are_shown_and_its_learner_is_told_apart(tmp_path: Path) -> None:
    pair = toys.experiment(tmp_path / "pair", labels=("kme",), maps=False)
    (pair / "config.json").write_text(json.dumps(toys.config(labels=("kme",)) | {"learner": "sac"}))
    for seed in (0, 1):
        rows = [toys.row(n, seed, "kme", explorer_return=100.0 * n + seed) for n in range(1, 9)]
        rows = [{key: value for key, value in row.items() if key != "method_bonus_seconds"} for row in rows]
        toys.log(pair / f"kme-{seed}" / "progress.jsonl", rows)
    whole, text = build(pair, toys.experiment(tmp_path / "ppo", maps=False))
    [task] = whole["tasks"]
    assert list(task["panels"])[:2] == ["extrinsic_return", "explorer_return"]
    assert task["panels"]["explorer_return"]["main"] and list(task["panels"]["explorer_return"]["curves"]) == [
        "kme (pair)"
    ]
    shown = {row["method"]: row["explorer's final return"] for row in whole["summary"]}
    assert shown["kme (pair)"].startswith("800.5") and shown["kme (ppo)"] == shown["none"] == "–"
    assert "Return of the explorer" in text and whole["costs"][0]["method"] == "kme (pair)"
    alone, _ = build(tmp_path / "ppo")
    assert "explorer's final return" not in alone["summary"][0]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    _, text = build(hostile(tmp_path / "runs"))
    parsed = Tags(text)
    assert {tag for tag, _ in parsed.tags} <= {
        "html", "head", "meta", "title", "link", "style", "body", "a", "header", "div", "h1", "p", "button", "label",
        "i", "input", "span", "noscript", "main", "section", "h2", "b", "table", "thead", "tbody", "tr", "th", "td",
        "figure", "figcaption", "select", "option", "output", "details", "summary", "dl", "dt", "dd", "script",
    }  # fmt: skip
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
    assert len(parsed.scripts) == 3 and "49" not in "".join(re.findall(r"hacked=1\S*", text.split("report-data")[0]))
    data = json.loads(parsed.scripts[0])
    assert f"gym:{WORSE}" in [task["title"] for task in data["tasks"]] and WORSE in data["methods"]
    assert EVIL not in text and "</script><script>window" not in text


def test_nothing_is_fetched_and_only_the_page_s_own_scripts_run(tmp_path: Path) -> None:
    _, text = build(toys.experiment(tmp_path / "toy", maps=False))
    parsed = Tags(text)
    places = [attrs[key] for _, attrs in parsed.tags for key in ("src", "href", "action") if key in attrs]
    assert places and all(place and place.startswith(("#", "data:")) for place in places)
    (policy,) = (
        a["content"] for tag, a in parsed.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and policy.startswith("default-src 'none'") and "unsafe-eval" not in policy
    for script in parsed.scripts[1:]:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "@import" not in page.asset("page.css") and "url(" not in page.asset("page.css")


def test_the_command_writes_whole_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "page.html"
    folder = toys.experiment(tmp_path / "toy", maps=False, seeds=1)
    assert main(["report", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert out.read_text().rstrip().endswith("</html>") and [p.name for p in out.parent.iterdir()] == ["page.html"]


def test_without_plotly_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r"pip install .*\[report\]'"):
        report([toys.experiment(tmp_path / "toy", maps=False, seeds=1)], tmp_path / "page.html")
