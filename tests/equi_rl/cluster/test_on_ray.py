# SPDX-License-Identifier: MIT
"""A sweep and players on a simulated Ray cluster of two nodes, one of them killed on the way."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from console_page import free_port

from equi_rl.cli.sweep import main as equi_sweep
from equi_rl.cli.train import main as equi_train
from equi_rl.cluster.worker import Worker
from equi_rl.nets.weights_digest import weights_digest
from equi_rl.sweep.job import Job
from equi_rl.sweep.runner import Sweep
from equi_rl.sweep.table import view, write_jobs
from equi_rl.training.checkpoints import RunCheckpoints
from equi_rl.training.collector import Players, PlayersOn
from equi_rl.training.config import Preset, RobotRun
from equi_rl.training.presets import robot_run
from equi_rl.training.trainer import RobotTrainer

ray = pytest.importorskip("ray", reason="Ray is not installed: make setup CLUSTER=1")
pytestmark = [pytest.mark.slow, pytest.mark.cluster]

_STARTS = 3  # a node that does not come up within Ray's fixed 30 s, on a busy machine


@contextlib.contextmanager
def two_nodes(head_cores: int = 2) -> Iterator[tuple[Any, Any]]:
    """A cluster on this machine: its head, which stays, and a second node that can be killed."""
    from ray.cluster_utils import Cluster

    def small() -> dict[str, int]:
        # A node that has to ask its agents for their ports ends itself after 15 s, which is too
        # short for them on a busy machine.
        agents = ("metrics_agent_port", "runtime_env_agent_port", "dashboard_agent_listen_port")
        ports = {name: free_port() for name in (*agents, "metrics_export_port")}
        return {"num_cpus": head_cores, "object_store_memory": 100 * 2**20, **ports}

    for attempt in range(_STARTS):
        cluster = Cluster()
        try:
            cluster.add_node(**small(), include_dashboard=False)
            second = cluster.add_node(**small())
            break
        except Exception:
            cluster.shutdown()  # else its head runs on beside the next one
            if attempt == _STARTS - 1:
                raise
    try:
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()


def kill(cluster: Any, node: Any) -> None:
    """As if its plug was pulled."""
    cluster.remove_node(node, allow_graceful=False)


# Sweeps -------------------------------------------------------------------------------------------


def small_jobs(count: int, steps: int = 6000) -> list[Job]:
    return [
        Job(
            f"seed{seed}",
            (
                *("carflag", "--domain", "carflag-1d", "--seeds", str(seed)),
                *("--steps", str(steps), "--evaluate-every", str(steps // 8)),
                *("--evaluation-episodes", "2", "--a2c.envs", "2", "--a2c.rollout-steps", "5"),
            ),
            memory_mib=256,
        )
        for seed in range(count)
    ]


def machines(job: Job, folder: Path) -> list[str]:
    return [str(attempt["machine"]) for attempt in job.attempts(folder)]


def test_a_sweep_outlives_one_of_its_two_nodes_and_does_nothing_twice(tmp_path):
    from equi_rl.sweep.ray_executor import RayExecutor

    jobs = small_jobs(8)
    sign = write_jobs(jobs, tmp_path)
    with two_nodes() as (cluster, second):
        sweep = Sweep(tmp_path, RayExecutor(sign, cluster.address, niceness=0))
        doomed = second.node_id[:6]
        killed: list[str] = []

        def pull_the_plug(_: Sweep) -> None:
            """Once something is finished, and something on the node is well under way."""
            running = [
                job.name
                for job in jobs
                if machines(job, tmp_path)[-1:] and doomed in machines(job, tmp_path)[-1]
                if view(job, tmp_path).state == "running"
                if (tmp_path / job.name / "checkpoint.safetensors").exists()
                if (view(job, tmp_path).share or 0.0) < 0.5
            ]
            if sweep.counts[0] and running and not killed:
                killed.extend(running)
                finished_before.update(
                    {job.name: stamp(job) for job in jobs if view(job, tmp_path).share == 1.0}
                )
                kill(cluster, second)

        def stamp(job: Job) -> int:
            return (tmp_path / job.name / "summary.json").stat().st_mtime_ns

        finished_before: dict[str, int] = {}
        assert sweep.run(jobs, pull_the_plug) == 0

    # Then every job is finished, what was finished before was not touched again,
    assert killed
    assert all(view(job, tmp_path).state == "finished" for job in jobs)
    for job in jobs:
        if job.name in finished_before:
            assert stamp(job) == finished_before[job.name]
            assert len(job.attempts(tmp_path)) == 1
    # and what ran on the lost node went on elsewhere, from its checkpoint.
    moved = [job for job in jobs if len(job.attempts(tmp_path)) > 1]
    assert set(killed) <= {job.name for job in moved}
    for job in moved:
        first, *then = machines(job, tmp_path)
        assert doomed in first
        # More than one if the lost node's process was not gone yet: it had the folder.
        assert all(doomed not in machine for machine in then)
        rows = (tmp_path / job.name / "progress.csv").read_text().splitlines()
        assert len(rows) == len(set(rows))  # no evaluation twice


def test_ctrl_c_leaves_no_process_and_no_claim(tmp_path):
    from equi_rl.sweep.ray_executor import RayExecutor

    (job,) = small_jobs(1, steps=10**8)
    sign = write_jobs([job], tmp_path)
    with two_nodes() as (cluster, _):
        sweep = Sweep(tmp_path, RayExecutor(sign, cluster.address, niceness=0))

        def interrupt(_: Sweep) -> None:
            if view(job, tmp_path).state == "running":
                os.kill(os.getpid(), signal.SIGINT)

        assert sweep.run([job], interrupt) == 130
        (attempt,) = job.attempts(tmp_path)
        assert not Path(f"/proc/{attempt['pid']}").exists()
        assert view(job, tmp_path).state == "stopped"


def test_a_job_that_no_node_can_hold_is_refused_before_anything_starts(tmp_path, capsys):
    with two_nodes() as (cluster, _):
        arguments = ["carflag", "--folder", str(tmp_path), "--on", "ray"]
        status = equi_sweep([*arguments, "--address", cluster.address, "--job-cores", "3"])
    assert status == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "needs 3 cores; the largest of the 2 nodes has 2; nothing was started" in said


# Players ------------------------------------------------------------------------------------------


def a_run() -> RobotRun:
    """A small run of everything that is played: demonstrations, random, own, evaluation.

    Pushed blocks, scenes of all kinds and an expert that takes over: whatever a player remembers of
    an earlier episode changes contacts, and so the bits.
    """
    return robot_run(
        "block_pushing",
        Preset.SHIP,
        evaluation_share=None,
        demonstrations=4,
        random_episodes=2,
        expert_takeover_within=5,
        imitation={"updates": 2},
        rounds=8,
        episodes_per_round=6,
        updates_per_round=2,
        batch_episodes=4,
        demonstrations_per_batch=2,
        evaluate_every=4,
        evaluation_episodes=4,
    )


class Disturbance:
    """What is done to the players of a run, one thing after the other, while it goes on."""

    def __init__(self, trainer: RobotTrainer, *actions: Callable[[list[Worker]], bool]) -> None:
        self._trainer, self._actions = trainer, list(actions)
        self.restarts = 0

    def __call__(self, progress: Any, metrics: Any) -> None:
        collector = self._trainer.collector
        assert collector is not None
        self.restarts = collector.restarts
        # The next round is being played now: players work ahead of the learner.
        if progress.rounds >= 1 and self._actions and self._actions[0](collector.players):
            self._actions.pop(0)

    @property
    def is_over(self) -> bool:
        return not self._actions


def kill_a_player(players: list[Worker]) -> bool:
    os.kill(int(players[0].where.rpartition(" ")[2]), signal.SIGKILL)
    return True


@dataclass
class KillNode:
    """Kills a node on which somebody plays."""

    cluster: Any
    node: Any
    players: int = 0

    def __call__(self, players: list[Worker]) -> bool:
        self.players = sum(self.node.node_id[:6] in player.where for player in players)
        if self.players:
            kill(self.cluster, self.node)
        return self.players > 0


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As equi-train sets it: two threads of the learner add up in either order, and bits differ."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(folder: Path, players: Players, *actions: Callable[[list[Worker]], bool]) -> str:
    """SHA-256 of all weights, moments and random states at the end of the run."""
    trainer = RobotTrainer(a_run(), folder, players)
    disturbance = Disturbance(trainer, *actions)
    trainer.train(report=disturbance)
    assert disturbance.is_over
    assert disturbance.restarts >= len(actions)  # the control: what was killed was replaced
    checkpoint = RunCheckpoints(folder).newest()
    assert checkpoint is not None
    return weights_digest(checkpoint.tensors)


@pytest.fixture(scope="module")
def of_one_player(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What everybody must end with: one process of this machine, nobody killed."""
    return told("1 local", trained(tmp_path_factory.mktemp("one"), Players(1)))


def told(who: str, digest: str) -> str:
    sys.stdout.write(f"{digest}  {who}\n")  # the table of training/docs/scaling.md
    return digest


@pytest.mark.parametrize("count", [2, 4])
def test_many_local_players_end_with_the_bits_of_one(count, of_one_player, tmp_path):
    assert told(f"{count} local", trained(tmp_path, Players(count))) == of_one_player


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_killed_local_player_changes_no_bit(count, of_one_player, tmp_path):
    digest = trained(tmp_path, Players(count), kill_a_player)
    assert told(f"{count} local, one killed", digest) == of_one_player


@pytest.mark.parametrize("count", [1, 2, 4])
def test_players_on_ray_end_with_the_bits_of_one(count, of_one_player, tmp_path):
    with two_nodes() as (cluster, _):
        digest = trained(tmp_path, Players(count, PlayersOn.RAY, cluster.address))
    assert told(f"{count} on Ray", digest) == of_one_player


@pytest.mark.parametrize("count", [2, 4])
def test_a_killed_player_and_a_killed_node_change_no_bit(count, of_one_player, tmp_path):
    with two_nodes(head_cores=count // 2) as (cluster, second):
        on_ray = Players(count, PlayersOn.RAY, cluster.address)
        # With every core taken, half of the players are on the node that goes.
        digest = trained(tmp_path, on_ray, KillNode(cluster, second), kill_a_player)
    assert told(f"{count} on Ray, a node and a player killed", digest) == of_one_player


def test_more_players_than_the_cluster_has_cores_are_refused(tmp_path, capsys):
    folder = tmp_path / "run"
    with two_nodes() as (cluster, _):
        arguments = ["robot", "--task", "block_picking", "--preset", "paper", "--players", "5"]
        ray_too = ["--players-on", "ray", "--address", cluster.address, "--folder", str(folder)]
        assert equi_train([*arguments, *ray_too]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "5 players need 5 cores; the Ray cluster has 4; nothing was started" in said
    assert not folder.exists()
