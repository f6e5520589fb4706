"""TensorBoard files: tags in groups, and a page of charts on which the runs of an experiment lie over each other."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GROUPS = {
    "return": ("extrinsic_return", "explorer_return", "episodes", "episodes_restarted"),
    "explore": ("state_entropy", "max_step_reward", "rewarded_steps"),
    "bonus": ("bonus_mean", "bonus_deviation", "scale"),
    "sac": tuple(
        who + name for who in ("", "explorer_") for name in ("critic_loss", "value", "policy_entropy", "temperature")
    ),
    "time": ("collect_seconds", "bonus_seconds", "learn_seconds", "method_bonus_seconds"),
}
Charts = Mapping[str, Mapping[str, tuple[str, ...]]]
LEARNERS: Charts = {
    "ppo": {
        "divergence of the policy": ("ppo/approx_kl",),
        "entropy of the actions (nats)": ("ppo/entropy",),
        "explained variance": ("ppo/explained_variance",),
    },
    "sac": {
        "rewarded steps so far": ("explore/rewarded_steps",),
        "entropy of the actions (nats)": ("sac/policy_entropy", "sac/explorer_policy_entropy"),
        "temperature": ("sac/temperature", "sac/explorer_temperature"),
        "value": ("sac/value", "sac/explorer_value"),
    },
}


def charts(learner: str) -> Charts:
    """The charts of a run's page by category."""
    theirs = ("return/explorer_return",) if learner == "sac" else ()
    by_method = {"each method's bonus": ("time/method_bonus_seconds",)} if learner == "ppo" else {}
    return {
        "With and without": {
            "return": ("return/extrinsic_return", *theirs),
            "entropy of visited states (nats)": ("explore/state_entropy",),
            "top dense reward": ("explore/max_step_reward",),
            "mean bonus": ("bonus/bonus_mean",),
        },
        "Are the clusters well?": {
            "share of empty cells": ("kme/empty_cells",),
            "imbalance of cell masses": ("kme/cell_mass_cv",),
            "gaps": ("kme/gap_mean", "kme/gap_min"),
            "clamped gaps": ("kme/clamped_gaps",),
        },
        f"Is {learner.upper()} well?": LEARNERS[learner],
        "What takes the time? (seconds per rollout)": {
            "all runs together": ("time/collect_seconds", "time/bonus_seconds", "time/learn_seconds"),
            **by_method,
        },
    }


_HOMES = {name: group for group, names in GROUPS.items() for name in names}


def tag(name: str) -> str:
    """The tag of a number of progress.jsonl: <group>/<name>. A bonus's metrics have their group in the name."""
    return name if "/" in name else f"{_HOMES.get(name, 'ppo')}/{name}"


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row by tag; those that no chart can show (null, NaN, infinities) are left out."""
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float) and name != "env_steps"}
    return {tag(name): float(value) for name, value in numbers.items() if math.isfinite(value)}


class Board:
    """The event file of one run, or nothing where tensorboard is not installed."""

    def __init__(self, folder: Path, purge: int, learner: str) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            self._file = None
            return
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._file = EventFileWriter(str(folder))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._file.add_event(self._event(wall_time=time.time(), step=purge, session_log=start))
        self._file.add_event(self._event(wall_time=time.time(), summary=self._summary(value=[_layout(learner)])))

    def write(self, row: Mapping[str, Any]) -> None:
        """All numbers of a row at its `env_steps`."""
        if self._file is None:
            return
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in scalars(row).items()]
        event = self._event(wall_time=time.time(), step=int(row["env_steps"]), summary=self._summary(value=values))
        self._file.add_event(event)

    def close(self) -> None:
        """Flush."""
        if self._file is not None:
            self._file.close()


def _layout(learner: str) -> Any:
    """`charts` as the "Custom Scalars" page wants it. Every run holds it; TensorBoard merges equal ones."""
    from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    def chart(title: str, tags: tuple[str, ...]) -> Any:
        lines = layout_pb2.MultilineChartContent(tag=[f"^{tag}$" for tag in tags])
        return layout_pb2.Chart(title=title, multiline=lines)

    categories = [
        layout_pb2.Category(title=title, chart=[chart(*item) for item in own.items()])
        for title, own in charts(learner).items()
    ]
    packed = layout_pb2.Layout(category=categories).SerializeToString()
    return summary_pb2.Summary.Value(
        tag=metadata.CONFIG_SUMMARY_TAG,
        tensor=tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[packed]),
        metadata=summary_pb2.SummaryMetadata(
            plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME)
        ),
    )
