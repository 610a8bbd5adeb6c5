# SPDX-License-Identifier: MIT
"""`equi-models`: what there is, what it is worth, and whether it was changed after export."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from equi_core.model_zoo.command import main
from equi_core.model_zoo.model_folder import Model
from equi_core.model_zoo.zoo_page import zoo_table

ROOT = Path(__file__).resolve().parents[3]
TASKS = ["block_picking", "block_pulling", "block_pushing", "drawer_opening"]


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models of its own, with two of the shipped ones."""
    parts = ("contract.json", "policy.safetensors", "evaluation.json", "MODEL_CARD.md")
    for task in TASKS[:2]:
        (tmp_path / task).mkdir()
        for part in parts:
            shutil.copyfile(ROOT / "models" / task / part, tmp_path / task / part)
    monkeypatch.setenv("EQUI_MODELS", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.setenv("ROS_HOME", str(tmp_path / "home"))
    return tmp_path


def test_every_shipped_model_is_intact(monkeypatch, capsys):
    monkeypatch.setenv("EQUI_MODELS", str(ROOT / "models"))
    assert main(["verify", *(str(ROOT / "models" / task) for task in TASKS)]) == 0
    assert capsys.readouterr().out.count("intact") == 4


def test_the_list_shows_success_with_its_interval(zoo, capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert "block_picking" in shown
    assert "block_pulling" in shown
    assert "200/200" in shown
    assert "0.42 MB" in shown


def test_one_model_is_shown_by_name_and_by_path(zoo, capsys, monkeypatch):
    assert main(["show", "block_picking"]) == 0
    by_name = capsys.readouterr().out
    assert "84 x 84 px over 0.4 m" in by_name
    assert "41,060, 5,825" in by_name
    monkeypatch.chdir(zoo)
    assert main(["show", "block_picking/"]) == 0
    assert capsys.readouterr().out == by_name


def test_an_unknown_model_is_refused_with_the_nearest_name(zoo, capsys):
    assert main(["show", "block_piking"]) == 2
    assert "did you mean 'block_picking'" in capsys.readouterr().err


def test_no_model_at_all_says_where_to_put_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUI_MODELS", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    assert main(["list"]) == 2
    assert "~/.ros/equi/models" in capsys.readouterr().err


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace('"max_steps": 50', '"max_steps": 60'))


def unsign(path: Path) -> None:
    fields = json.loads(path.read_text())
    del fields["contract_sha256"]
    path.write_text(json.dumps(fields))


def of_other_weights(path: Path) -> None:
    digest = json.loads((path.parent / "contract.json").read_text())["weights_sha256"]
    path.write_text(path.read_text().replace(digest, 64 * "0"))


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("policy.safetensors", flip_a_byte, "changed or damaged after export"),
        ("policy.safetensors", cut_short, "changed or damaged after export"),
        ("policy.safetensors", Path.unlink, "policy.safetensors is missing"),
        ("contract.json", edit, "changed after export"),
        ("contract.json", unsign, "carries no digest of itself"),
        ("evaluation.json", of_other_weights, "was measured with other weights"),
        ("evaluation.json", cut_short, "evaluation.json cannot be read"),
        ("MODEL_CARD.md", of_other_weights, "describes other weights"),
        ("MODEL_CARD.md", Path.unlink, "MODEL_CARD.md is missing"),
    ],
)
def test_whatever_was_changed_is_named_and_the_others_stay_intact(zoo, capsys, file, damage, said):
    damage(zoo / "block_picking" / file)
    assert main(["verify"]) == 1
    shown = capsys.readouterr().out
    assert f"BROKEN  {'block_picking':<20}" in shown
    assert said in shown
    assert "intact  block_pulling" in shown


def test_the_page_of_the_models_has_the_table_of_the_models():
    table = zoo_table(Model.load(ROOT / "models" / task) for task in TASKS)
    page = (ROOT / "models" / "README.md").read_text()
    assert table in page, "run `equi-models list models/* --markdown` and put it into the page"


def test_a_changed_probe_is_found(zoo, capsys):
    probe = json.loads((ROOT / "models" / "block_picking" / "probe.json").read_text())
    probe["weights"][0][0] += 0.5
    (zoo / "block_picking" / "probe.json").write_text(json.dumps(probe))
    assert main(["verify"]) == 1
    assert "probe.json was changed after it was fitted" in capsys.readouterr().out
