# SPDX-License-Identifier: MIT
"""Episodes of the desk end as results of an evaluation; the server keeps strangers out."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from equi_console.desk import Desk
from equi_console.desk_state import DeskState
from equi_console.drawing import side_view, top_view
from equi_console.episode_worker import EpisodeWorker
from equi_console.web.server_options import ServerError, parse, require_free
from families import wait_until

from equi_core.files.scene_layout import LayoutObject, SceneLayout, SceneLayouts
from equi_evaluation.evaluate_options import EvaluateOptions
from equi_evaluation.results import EpisodeResult, load_results


def options(output: Path, *, ground_truth: bool) -> EvaluateOptions:
    return EvaluateOptions(
        *(5, 700, "block_picking", "sim", "policy", "models/x", ground_truth),
        *(True, False, "none", (), 0, "", output, 1.0),
    )


class Runner:
    """Plays an episode when it is let to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.outcome = "SUCCEEDED"
        self.seeds: list[int] = []
        self.goals: list[Any] = []

    def wait_for_policy(self, timeout_s: float) -> bool:
        return True

    def start_recording(self, path: Path) -> None:
        raise AssertionError("no record was asked for")

    def end_recording(self, metadata: Any) -> str:
        return ""

    def run_episode(self, episode_id: str, seed: int, tick: Any, goal: Any = None) -> EpisodeResult:
        self.seeds.append(seed)
        self.goals.append(goal)
        tick(SimpleNamespace(steps=3, phase="moving"))
        self.go.wait(10.0)
        good = self.outcome == "SUCCEEDED"
        stopped = self.outcome == "STOPPED"
        return EpisodeResult(
            *(episode_id, seed, self.outcome, "it", good, "operator", "movable", 3, 4.0),
            invalid=stopped,
        )


@pytest.fixture(params=[True, False], ids=["referee", "operator"])
def ground_truth(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def parts(tmp_path: Path, ground_truth: bool) -> Iterator[tuple[Desk, EpisodeWorker, Runner]]:
    desk, runner = Desk(DeskState(), lambda *_: None), Runner()
    worker = EpisodeWorker(desk, options(tmp_path, ground_truth=ground_truth), lambda: runner)
    worker.start()
    yield desk, worker, runner
    worker.close()
    runner.go.set()


@pytest.mark.parametrize("ground_truth", [True], indirect=True)
def test_n_episodes_run_on_consecutive_scenes_and_end_in_the_results(
    parts: tuple[Desk, EpisodeWorker, Runner], tmp_path: Path
) -> None:
    desk, worker, runner = parts
    worker.request(3)
    wait_until(lambda: desk.running == "episode 1: step 3, moving", 5.0, "the feedback")
    runner.go.set()
    wait_until(lambda: len(worker.store.results) == 3 and not desk.running, 5.0, "three results")
    assert runner.seeds == [700, 701, 702]
    assert [result.success for result in load_results(tmp_path)] == [True] * 3
    assert (worker.rate.successes, worker.rate.episodes) == (3, 3)
    assert worker.report().name == "report.html"


def test_an_episode_gets_the_goal_of_its_layout(tmp_path: Path) -> None:
    block = LayoutObject("block", 0.5, 0.0, 0.0, (0.05, 0.05, 0.05), True)
    layouts = SceneLayouts("block_pushing", (SceneLayout(700, (block,), (0.4, 0.1)),))
    desk, runner = Desk(DeskState(), lambda *_: None), Runner()
    runner.go.set()
    worker = EpisodeWorker(desk, options(tmp_path, ground_truth=True), lambda: runner, layouts)
    worker.start()
    worker.request(1)
    wait_until(lambda: len(worker.store.results) == 1, 5.0, "the result")
    worker.close()
    assert runner.goals == [(0.4, 0.1)]


@pytest.mark.parametrize("ground_truth", [True], indirect=True)
@pytest.mark.parametrize("outcome", ["STOPPED", "FAULTED", "REFUSED"])
def test_a_stop_or_a_fault_ends_the_series(
    parts: tuple[Desk, EpisodeWorker, Runner], outcome: str
) -> None:
    desk, worker, runner = parts
    runner.outcome = outcome
    runner.go.set()
    worker.request(3)
    wait_until(lambda: len(worker.store.results) == 1 and not desk.running, 5.0, "one result")
    assert runner.seeds == [700]


@pytest.mark.parametrize("ground_truth", [False], indirect=True)
@pytest.mark.parametrize(
    ("label", "success", "invalid"),
    [("success", True, False), ("failure", False, False), ("void", False, True)],
)
def test_the_operators_label_is_waited_for(
    parts: tuple[Desk, EpisodeWorker, Runner], label: str, success: bool, invalid: bool
) -> None:
    desk, worker, runner = parts
    runner.go.set()
    worker.request(1)
    wait_until(lambda: desk.awaiting_label == "episode 1", 5.0, "the question")
    assert worker.label(label) == f"episode 1: {label}"
    wait_until(lambda: len(worker.store.results) == 1, 5.0, "the result")
    result = worker.store.results[0]
    assert (result.success, result.invalid) == (success, invalid)


@pytest.mark.parametrize("ground_truth", [False], indirect=True)
def test_success_may_be_declared_while_the_episode_runs(
    parts: tuple[Desk, EpisodeWorker, Runner],
) -> None:
    desk, worker, runner = parts
    worker.request(1)
    wait_until(lambda: bool(desk.running), 5.0, "the episode")
    assert not worker.declared_success()
    worker.label("success")
    assert worker.declared_success(), "the evaluator's referee says so to the policy"
    runner.go.set()
    wait_until(lambda: len(worker.store.results) == 1, 5.0, "the result")
    assert worker.store.results[0].success


def test_loopback_needs_no_token_and_everything_else_gets_a_fresh_one() -> None:
    assert parse([]).token == ""
    assert parse([]).address == "http://127.0.0.1:8477/"
    first, second = (parse(["--host", "0.0.0.0"]) for _ in range(2))
    assert len(first.token) > 20
    assert first.token != second.token
    assert first.address.endswith(f"/?token={first.token}")


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"at 127.0.0.1:{port}: the port is taken.*--port"):
            require_free(parse(["--port", str(port)]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--port", "99999"], r"--port \(console_port:=\) is 99999; a port is .* 1 to 65535"),
        (["--port", "0"], "is 0; a port is"),
        (["--host", "192.0.2.77"], "192.0.2.77:8477: no address of this computer.*--host"),
        (["--host", "no-such-host.invalid"], "no address of this computer is called so"),
    ],
)
def test_a_place_that_cannot_be_served_is_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(ServerError, match=sentence) as refused:
        require_free(parse(words))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("query", "cookie", "let_in"),
    [
        (b"token=right", b"", True),
        (b"", b"equi_console_token=right", True),
        (b"token=wrong", b"", False),
        (b"", b"equi_console_token=wrong", False),
        (b"", b"", False),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_nobody_gets_in_without_the_token(
    kind: str, query: bytes, cookie: bytes, let_in: bool
) -> None:
    server = pytest.importorskip("equi_console.web.server", reason="needs make setup CONSOLE=1")
    reached, sent = [], []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "query_string": query, "headers": [(b"cookie", cookie)]}
    asyncio.run(server.TokenCheck(page, "right")(scope, None, send))
    assert bool(reached) is let_in
    if not let_in:
        refused = {"http": "http.response.start", "websocket": "websocket.close"}[kind]
        assert sent[0]["type"] == refused
        assert sent[0].get("status", 403) == 403


def test_without_an_observation_the_picture_says_so() -> None:
    assert top_view(DeskState())[:3] == b"\xff\xd8\xff"


def test_a_cameras_picture_becomes_a_small_one() -> None:
    rgb = np.zeros((480, 640, 3), dtype=np.uint8)
    rgb[..., 0] = 255
    small = cv2.imdecode(np.frombuffer(side_view(rgb), np.uint8), cv2.IMREAD_COLOR)
    assert small.shape == (240, 320, 3)
    blue, green, red = small[120, 160]
    assert (blue < 20, green < 20, red > 230) == (True, True, True)
