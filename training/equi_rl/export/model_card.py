# SPDX-License-Identifier: MIT
"""The card of an exported policy: what it is, what was measured, how it learnt, how it looks.

Every number is read from the contract or the evaluation, or measured on the exported weights.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from equi_core.belief.probe_file import CARD_FILE as PROBE_CARD_FILE
from equi_core.belief.probe_file import PROBE_FILE
from equi_core.contract import PolicyContract
from equi_core.statistics import SuccessRate
from equi_rl.nets.equivariance import ElementError, actor_errors
from equi_rl.nets.layers import count_parameters
from equi_rl.nets.networks import Actor
from equi_rl.training.config import LEARN_FROM_VALUES
from equi_rl.training.evaluation import RESULT_FILE, Evaluation

CARD_FILE = "MODEL_CARD.md"
CURVE_FILE = "curve.png"

_PICTURES = {
    CURVE_FILE: "success over environment steps",
    "success.gif": "an episode that succeeds",
    "failure.gif": "an episode that fails",
}
_FROM_REWARD = (
    "an asymmetric actor-critic that learns from reward. In training its critic saw the"
    " simulator's state, including which object is movable; the policy never did"
)
_PRESETS = {
    "ship": "imitation of an expert that chooses by what can be seen and labels every state the"
    " policy visits (DAgger). Every second scene has random size, mass, friction, calibration"
    " error, latency and depth noise. No reward was used: do not compare this result with agents"
    " that learn from reward and 80 demonstrations",
    "paper": "80 demonstrations, 20 random episodes, recurrent SAC",
    "reward": f"80 demonstrations: first imitation, then {_FROM_REWARD}",
    "brief": f"80 demonstrations: first imitation, then, in few steps, {_FROM_REWARD}",
    "deploy": "300 demonstrations of an expert that chooses by what can be seen: first imitation,"
    f" then {_FROM_REWARD}. Every second scene had random size, mass, friction, calibration error,"
    " latency and depth noise; the arm was stiff and stopped at contact",
}


def model_card(
    contract: PolicyContract,
    actor: Actor,
    evaluation: Evaluation | None,
    images: Sequence[str] = (),
    progress: Sequence[Mapping[str, str]] = (),
) -> str:
    """The card as Markdown; `images` lie beside it, `progress` are the rows of the run's file."""
    config, origin = actor.config, contract.provenance
    errors = actor_errors(actor, steps=20, episodes=2, seed=0)
    exact = [error for error in errors if error.exact_on_pixels]
    other = [error for error in errors if not error.exact_on_pixels]
    symmetric = "all parts" if config.is_equivariant else "not all parts (see contract)"
    lines = [
        f"# {contract.task}: recurrent policy, group {contract.group}",
        "",
        *_measured(contract, evaluation),
        "",
        *(f"![{_PICTURES[name]}]({name})" for name in images),
        "",
        "## Origin",
        "",
        "| | |",
        "|---|---|",
        f"| agent, preset, seed | {origin.agent}, {origin.preset}, {origin.seed} |",
        f"| trained by | {_PRESETS.get(origin.preset, 'unknown')} |",
        *_imitation_alone(contract, progress),
        f"| environment steps, gradient steps | {origin.environment_steps:,},"
        f" {origin.gradient_steps:,} |",
        f"| code version | {origin.code_version} |",
        f"| trained parameters of the actor | {count_parameters(actor):,} |",
        f"| equivariant under {contract.group} | {symmetric} |",
        f"| largest equivariance error, elements that are exact on pixels | {_largest(exact)} |",
    ]
    if other:
        lines.append(f"| largest equivariance error, interpolated rotations | {_largest(other)} |")
    lines += [
        f"| weights | `policy.safetensors`, sha256 `{contract.weights_sha256}` |",
        f"| contract, which covers the weights | `contract.json`, sha256 `{contract.sha256}` |",
        "",
        "Errors are the largest absolute difference of the Gaussian's mean before squashing, over"
        " 2 random histories of 20 steps.",
        "",
        "## Use",
        "",
        "`contract.json` describes observation, action, workspace and network; the robot reads"
        " nothing else. Load the policy with `equi_policy.load_policy(folder)`; nothing is"
        " unpickled.",
        "",
        "## Limits",
        "",
        f"Trained in simulation for `{contract.task}` only, with episodes of at most"
        f" {contract.max_steps} steps. The success above says nothing about other objects,"
        " cameras or workspaces. Nothing was measured on hardware: rehearse in the simulated cell"
        " before you move a robot.",
        "",
    ]
    return "\n".join(lines)


def _measured(contract: PolicyContract, evaluation: Evaluation | None) -> list[str]:
    origin = contract.provenance
    if evaluation is None:
        selected = SuccessRate(origin.evaluation_successes, origin.evaluation_episodes)
        if not selected.episodes:
            return ["Success in simulation: not measured."]
        return [
            f"Success of the deterministic policy in simulation: {selected}. The checkpoint was"
            " selected on the same scenes, so the success on other scenes may be lower."
        ]
    varied = ", varied as in training" if evaluation.randomised else ""
    varied += ", on a stiff arm that stops at contact" if evaluation.stiff_arm else ""
    lines = [
        f"Success of the deterministic policy in simulation, on {evaluation.overall.episodes}"
        " scenes that were used neither for training nor for selection (seeds from"
        f" {evaluation.first_seed}{varied}):",
        "",
        "| episodes | success | 95 % interval | mean steps to success |",
        "|---|---|---|---|",
    ]
    for name, rate, length in evaluation.rows():
        low, high = rate.interval
        steps = "-" if math.isnan(length) else f"{length:.1f}"
        lines.append(
            f"| {name} | {rate.rate:.3f} ({rate.successes}/{rate.episodes}) |"
            f" {low:.3f} to {high:.3f} | {steps} |"
        )
    failures = [f"{reason} ({count})" for reason, count in evaluation.failures.items()]
    return [*lines, "", f"Failures: {', '.join(failures) or 'none'}."]


def _imitation_alone(contract: PolicyContract, progress: Sequence[Mapping[str, str]]) -> list[str]:
    """The control of a policy that learned from reward: the same run before any reward."""
    origin = contract.provenance
    if origin.preset not in {preset.value for preset in LEARN_FROM_VALUES}:
        return []
    before = next((row for row in progress if row["rounds"] == "0"), None)
    after = next(
        (row for row in progress if int(row["environment_steps"]) == origin.environment_steps), None
    )
    if before is None or after is None:
        return ["| control, imitation alone | not known: exported without its run folder |"]
    rates = [SuccessRate(int(row["successes"]), int(row["episodes"])) for row in (before, after)]
    return [
        "| control, imitation alone: the same run before it saw any reward, on the"
        f" {rates[0].episodes} selection scenes | {rates[0]}; this policy on them {rates[1]} |"
    ]


def images_in(folder: Path) -> list[str]:
    """Names of the curve and videos that lie in a model folder."""
    return [name for name in _PICTURES if (folder / name).is_file()]


def remove_evidence(model: Path) -> None:
    """Delete evaluation, videos, curve and probe: they are of the weights that lay there before."""
    for name in (RESULT_FILE, *_PICTURES, PROBE_FILE, PROBE_CARD_FILE):
        (model / name).unlink(missing_ok=True)


def copy_evaluation(evaluation: Path, model: Path) -> None:
    """Every episode's outcome, and the first video of a success and of a failure."""
    shutil.copyfile(evaluation / RESULT_FILE, model / RESULT_FILE)
    for name in ("success", "failure"):
        video = evaluation / f"{name}_0.gif"
        if video.is_file():
            shutil.copyfile(video, model / f"{name}.gif")


def draw_curve(rows: Sequence[Mapping[str, str]], model: Path) -> None:
    """Success over environment steps on the selection scenes, with Wilson intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    steps = [int(row["environment_steps"]) for row in rows]
    rates = [SuccessRate(int(row["successes"]), int(row["episodes"])) for row in rows]
    figure, axis = pyplot.subplots(figsize=(4.6, 2.8))
    axis.fill_between(
        steps,
        [rate.interval[0] for rate in rates],
        [rate.interval[1] for rate in rates],
        color="#1b6ca8",
        alpha=0.2,
        linewidth=0,
    )
    axis.plot(steps, [rate.rate for rate in rates], color="#1b6ca8", marker="o", markersize=3)
    axis.set_xlabel("environment steps (demonstrations included)", fontsize=8)
    counts = " or ".join(str(count) for count in sorted({rate.episodes for rate in rates}))
    axis.set_ylabel(f"success, {counts} greedy episodes", fontsize=8)
    axis.set_ylim(-0.02, 1.02)
    axis.set_xlim(left=0)
    axis.grid(alpha=0.3)
    axis.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(model / CURVE_FILE, dpi=110)
    pyplot.close(figure)


def _largest(errors: list[ElementError]) -> str:
    return f"{max(error.largest for error in errors):.1e}" if errors else "none"
