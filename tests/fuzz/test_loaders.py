# SPDX-License-Identifier: MIT
"""Every loader against damaged files: its own error, never another one, and nothing else accepted.

    make fuzz                            # 10,000 cases per parser
    make fuzz EQUI_FUZZ_CASES=100000

Each test starts from a file as the project writes it. Where a digest covers the content, a file
that is accepted must say the same as before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import CASES, Tally, fuzz_settings, mutated, run

from equi_core.calibration import CalibrationError, CellCalibration
from equi_core.cell_file import CellFile, CellFileError
from equi_core.contract import ContractError, PolicyContract

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600)]


@pytest.fixture
def fuzz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Tally]:
    """Runs one parser over the mutations of a file, and prints how they ended."""

    def over(
        name: str,
        original: bytes,
        load: Callable[[Path], Any],
        refusals: tuple[type[Exception], ...],
        same: Callable[[Any], bool] | None = None,
        file: Path | None = None,
    ) -> Tally:
        path = file or tmp_path / "file"
        tally = Tally()

        @fuzz_settings
        @given(mutated(original))
        def check(data: bytes) -> None:
            path.write_bytes(data)
            run(tally, lambda: load(path), refusals, same, data)

        check()
        cases = tally.refused + tally.accepted
        changed = "" if same is None else f"{len(tally.different)} accepted though changed, "
        with capsys.disabled():
            print(  # noqa: T201
                f"\n{name}: {cases} cases, {tally.refused} refused, {tally.accepted} accepted, "
                f"{changed}0 untyped errors"
            )
        assert cases >= CASES
        return tally

    return over


def test_the_contract(fuzz, repository_root):
    original = (repository_root / "models/block_picking/contract.json").read_bytes()
    contract = PolicyContract.from_json(original.decode())
    tally = fuzz("contract", original, PolicyContract.load, (ContractError,), contract.__eq__)
    assert tally.different == []


def test_the_model_folder_with_a_changed_contract(fuzz, repository_root, tmp_path):
    import shutil

    from equi_policy.deployed_policy import DeployedPolicy
    from equi_policy.errors import PolicyError

    model = tmp_path / "model"
    shutil.copytree(repository_root / "models/block_picking", model)
    path = model / "contract.json"
    contract = PolicyContract.load(path)
    tally = fuzz(
        "model folder, contract",
        path.read_bytes(),
        lambda file: DeployedPolicy.load(file.parent),
        (ContractError, PolicyError),
        lambda policy: policy.contract == contract,
        path,
    )
    assert tally.different == []


def test_the_model_folder_with_changed_weights(fuzz, tmp_path):
    from equi_policy.bench_policy_step import write_random_policy
    from equi_policy.deployed_policy import DeployedPolicy
    from equi_policy.errors import PolicyError

    model = write_random_policy(tmp_path)
    path = model / "policy.safetensors"
    original = path.read_bytes()
    tally = fuzz(
        "model folder, weights",
        original,
        lambda file: DeployedPolicy.load(file.parent),
        (ContractError, PolicyError),
        lambda _: path.read_bytes() == original,
        path,
    )
    assert tally.different == []


@pytest.mark.parametrize("cell", ["sim", "lab"])
def test_the_cell_file(fuzz, repository_root, tmp_path, cell):
    """Words may change unseen, but what protects stays within its bounds (`cell_ceilings`)."""
    path = repository_root / "ros2_ws/src/equi_bringup/launch/cells" / f"{cell}.yaml"
    head = path.read_bytes().split(b"\nequi_calibrate:")[0] + b"\n"

    def within_bounds(file: CellFile) -> bool:
        from equi_core.files.cell_ceilings import loosened_too_far

        flat = {node: file.parameters(node) for node in file.blocks}
        return not list(loosened_too_far(flat, simulated=file.simulated))

    tally = fuzz(
        f"cell file {cell}",
        head,
        CellFile.load,
        (CellFileError,),
        within_bounds,
        tmp_path / "cell.yaml",
    )
    assert tally.different == []


def test_the_calibration(fuzz, repository_root, tmp_path):
    path = repository_root / "calibration/results/sim/calibration.yaml"
    calibration = CellCalibration.load(path)
    tally = fuzz(
        "calibration",
        path.read_bytes(),
        CellCalibration.load,
        (CalibrationError,),
        calibration.__eq__,
        tmp_path / "calibration.yaml",
    )
    assert tally.different == []


def test_results_of_an_evaluation(fuzz, repository_root, tmp_path):
    from equi_evaluation.results import ResultsError, load_results

    original = (repository_root / "tests/equi_evaluation/stored/results.jsonl").read_bytes()
    fuzz(
        "results",
        original,
        lambda file: load_results(file.parent),
        (ResultsError,),
        file=tmp_path / "results.jsonl",
    )


def test_settings_of_an_evaluation(fuzz, repository_root, tmp_path):
    from equi_evaluation.results import ResultsError, load_settings

    original = (repository_root / "tests/equi_evaluation/stored/settings.json").read_bytes()
    fuzz(
        "settings",
        original,
        lambda file: load_settings(file.parent),
        (ResultsError,),
        file=tmp_path / "settings.json",
    )


def test_the_configuration_of_a_run(fuzz, repository_root, tmp_path):
    from equi_rl.training.run_folder import RunFolder, RunFolderError

    original = (repository_root / "tests/equi_rl/stored/robot_run/config.json").read_bytes()
    fuzz(
        "run configuration",
        original,
        lambda file: RunFolder(file.parent).read_config(),
        (RunFolderError,),
        file=tmp_path / "config.json",
    )


def test_the_checkpoint_of_a_run(fuzz, repository_root, tmp_path):
    from equi_rl.training.run_folder import RunFolder, RunFolderError

    stored = repository_root / "tests/equi_rl/stored/carflag_run/checkpoint.safetensors"
    fuzz(
        "run checkpoint",
        stored.read_bytes(),
        lambda file: RunFolder(file.parent).load_checkpoint(),
        (RunFolderError,),
        file=tmp_path / stored.name,
    )


def test_demonstrations(fuzz, repository_root, tmp_path):
    from equi_rl.data.demonstrations import DemoError, DemoSet

    original = (repository_root / "tests/equi_rl/stored/demonstrations.npz").read_bytes()
    fuzz("demonstrations", original, DemoSet.load, (DemoError,))


def test_stored_episodes(fuzz, repository_root, tmp_path):
    from equi_rl.data.episode import ReplayError
    from equi_rl.data.replay_buffer import stored_episodes

    stored = repository_root / "tests/equi_rl/stored/robot_run/memory/episode_00000000.npz"
    fuzz(
        "stored episodes",
        stored.read_bytes(),
        lambda file: list(stored_episodes(file.parent, 1)),
        (ReplayError,),
        file=tmp_path / stored.name,
    )


def test_the_result_of_a_training_evaluation(fuzz, repository_root, tmp_path):
    from equi_rl.training.evaluation import Evaluation, EvaluationError

    content = json.loads((repository_root / "models/block_picking/evaluation.json").read_text())
    content["episodes"] = content["episodes"][:4]
    fuzz(
        "training evaluation",
        json.dumps(content).encode(),
        lambda file: Evaluation.load(file.parent),
        (EvaluationError,),
        file=tmp_path / "evaluation.json",
    )


def test_a_calibration_dataset(fuzz, repository_root, tmp_path):
    import shutil

    from equi_calibration.collect.dataset import load_dataset
    from equi_calibration.errors import DatasetError

    folder = tmp_path / "dataset"
    shutil.copytree(repository_root / "tests/calibration/stored/dataset", folder)
    path = folder / "dataset.json"
    fuzz(
        "calibration dataset",
        path.read_bytes(),
        lambda file: load_dataset(file.parent),
        (DatasetError,),
        file=path,
    )


def test_a_calibration_solution(fuzz, repository_root, tmp_path):
    from equi_calibration.errors import DatasetError
    from equi_calibration.solve.solution import Solution

    original = (repository_root / "tests/calibration/stored/solution.json").read_bytes()
    fuzz(
        "calibration solution",
        original,
        Solution.load,
        (DatasetError,),
        file=tmp_path / "solution.json",
    )


def small_recording(path: Path) -> bytes:
    """An MCAP with two messages, a schema and metadata, chunked and compressed."""
    from mcap.writer import CompressionType, Writer

    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library="test")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channel = writer.register_channel("/word", "cdr", schema)
        for index in range(2):
            cdr = b"\x00\x01\x00\x00" + (6).to_bytes(4, "little") + b"hello\x00"
            writer.add_message(channel, index, cdr, index, index)
        writer.add_metadata("episode", {"seed": "1"})
        writer.finish()
    return path.read_bytes()


def test_recordings(fuzz, tmp_path):
    from equi_evaluation.recording import RecordingError, read_metadata, read_recording

    original = small_recording(tmp_path / "small.mcap")

    def load(path: Path) -> Any:
        return list(read_recording(path)), read_metadata(path)

    fuzz("recordings", original, load, (RecordingError,), file=tmp_path / "record.mcap")


def test_point_clouds_off_the_wire(capsys):
    """Bytes of a PointCloud2, mutated, through the reader and into points."""
    import numpy as np
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import PointCloud2, PointField

    from equi_perception.cloud_layout import CloudLayoutError
    from equi_perception.raw_cloud import RawCloudError, read_cloud

    message = PointCloud2(height=2, width=3, point_step=16, row_step=48, is_dense=True)
    message.header.frame_id = "cam_left_depth_optical_frame"
    message.fields = [
        PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
        for index, name in enumerate("xyz")
    ]
    message.data = np.zeros(24, np.float32).tobytes()
    tally = Tally()

    @fuzz_settings
    @given(mutated(bytes(serialize_message(message))))
    def check(data: bytes) -> None:
        run(tally, lambda: read_cloud(data).points, (RawCloudError, CloudLayoutError))

    check()
    with capsys.disabled():
        print(f"\npoint clouds: {tally.refused} refused, {tally.accepted} accepted")  # noqa: T201
    assert tally.refused + tally.accepted >= CASES


def test_text_of_any_kind(capsys):
    """JSON and YAML of any characters: data or PlainDataError, nothing else."""
    from equi_core.files.plain_data import PlainDataError, parse_json, parse_yaml

    tally = Tally()

    @fuzz_settings
    @given(st.text(max_size=200))
    def check(text: str) -> None:
        for parse in (parse_json, parse_yaml):
            run(tally, partial(parse, text), (PlainDataError,))

    check()
    with capsys.disabled():
        print(f"\nplain data: {tally.refused} refused, {tally.accepted} accepted")  # noqa: T201
    assert tally.refused + tally.accepted >= 2 * CASES
