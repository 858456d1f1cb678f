"""What is shipped of the second package: its modules, the register of data files and two commands; no results."""

from importlib.metadata import entry_points
from pathlib import Path

from distributions import built
from metaprior.cli.command import GROUP, all_commands

PROJECT = Path(__file__).parents[1]


def test_the_wheel_has_the_register_and_no_results(tmp_path):
    shipped = built(PROJECT, tmp_path)
    own = [name for name in shipped.wheel if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in own} == {"metaprior_reproduction"}
    assert "metaprior_reproduction/datasets/registry.json" in own
    assert [name for name in shipped.wheel + shipped.source if name.endswith(("result.json", ".png", ".svg"))] == []


def test_its_commands_are_those_of_the_same_program():
    assert {entry.name for entry in entry_points(group=GROUP)} >= {"reproduce", "report"}
    assert {"fit", "reproduce", "report"} <= set(all_commands())
