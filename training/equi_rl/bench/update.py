# SPDX-License-Identifier: MIT
"""`equi-bench update`: one full actor + critic update, fast path against plain escnn modules.

Both sides own the same networks, see the same batch and minimise the same losses. The escnn side is
the straightforward program: padded batches, the modules called as escnn offers them (filters
expanded at every call, the LSTM step by step), the actor run once for the target and once for its
loss, the critic's gradients in the actor's loss not switched off. It encodes a frame once per call,
which is already better than the published implementation (twice). The two sides alternate in one
process; numbers are medians, and only ratios carry over to another machine.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from equi_rl.agents.sac import SacUpdate
from equi_rl.agents.sac_settings import SacSettings
from equi_rl.agents.stage_timer import StageTimer
from equi_rl.data.episode_batch import EpisodeBatch, random_batch
from equi_rl.nets.agent import build_agent
from equi_rl.nets.config import GROUP_CHOICES, Combination, NetworkConfig, reference_config
from equi_rl.nets.distributions import sample
from equi_rl.nets.networks import Actor, Critic, initial_state

FULL_LENGTHS = (50,) * 32
DEMO_LENGTHS = (6, 23) * 16  # expert demonstrations of block picking: movable first or second
# Encoder passes of one update: (forward, weight gradient, input gradient) of each network.
_PASSES = {
    "actor": (1, 1, 1),
    "target": (1, 0, 0),
    "critic": (1, 1, 1),
    "updated critic": (1, 0, 0),
}


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parsed = _parse(options)
    if parsed.threads:
        torch.set_num_threads(parsed.threads)
    torch.manual_seed(0)
    config = reference_config(parsed.group)
    actor, critic = build_agent(Combination(parsed.agent), config, "channels")
    escnn_actor, escnn_critic = copy.deepcopy(actor), copy.deepcopy(critic)
    fast = SacUpdate(actor, critic)
    reusing = SacUpdate(
        copy.deepcopy(actor), copy.deepcopy(critic), SacSettings(actor_uses_updated_critic=False)
    )
    full, demo = (
        random_batch(config.observation_size, lengths) for lengths in (FULL_LENGTHS, DEMO_LENGTHS)
    )
    plain = EscnnUpdate(escnn_actor, escnn_critic)
    padded = pad(full)

    full_timer, demo_timer = StageTimer(), StageTimer()
    fast.step(demo)  # warm up allocators and kernels
    fast_s: list[float] = []
    demo_s: list[float] = []
    reusing_s: list[float] = []
    escnn_s: list[float] = []
    with Progress(transient=True) as progress:
        task = progress.add_task("updates", total=parsed.repeats)
        for _ in range(parsed.repeats):
            demo_s.append(_timed(lambda: fast.step(demo, timer=demo_timer)))
            fast_s.append(_timed(lambda: fast.step(full, timer=full_timer)))
            reusing_s.append(_timed(lambda: reusing.step(full)))
            if not parsed.skip_escnn:
                escnn_s.append(_timed(lambda: plain.step(padded)))
            progress.advance(task)
    peak = matmul_peak()
    operations = update_operations(config, full.layout.n_frames, full.layout.n_steps)
    full_s, achieved = statistics.median(fast_s), operations / statistics.median(fast_s)
    escnn = statistics.median(escnn_s) if escnn_s else None
    demo_median = statistics.median(demo_s)
    _report(parsed.repeats, full_timer, full_s, demo_timer, demo_median)
    return {
        "full_batch_s": round(full_s, 4),
        "demo_batch_s": round(demo_median, 4),
        "escnn_full_batch_s": None if escnn is None else round(escnn, 4),
        "speedup_vs_escnn": None if escnn is None else round(escnn / full_s, 2),
        "full_batch_reused_critic_s": round(statistics.median(reusing_s), 4),
        "full_batch_spread_s": [round(min(fast_s), 4), round(max(fast_s), 4)],
        "encoder_gflop_per_update": round(operations / 1e9, 1),
        "achieved_gflops": round(achieved / 1e9, 1),
        "matmul_peak_gflops": round(peak / 1e9, 1),
        "share_of_peak": round(achieved / peak, 3),
        "parts_full_s": {k: round(v / parsed.repeats, 4) for k, v in full_timer.seconds.items()},
        "convolution_dtype": str(fast.networks.dtype).removeprefix("torch."),
        "group": parsed.group,
        "agent": parsed.agent,
        "threads": torch.get_num_threads(),
        "repeats": parsed.repeats,
    }


class EscnnUpdate:
    """The same update written directly on escnn modules, over padded (T, B) batches."""

    def __init__(self, actor: Actor, critic: Critic, settings: SacSettings | None = None) -> None:
        self.settings = settings or SacSettings()
        self.actor, self.critic, self.target = actor, critic, copy.deepcopy(critic)
        self.log_temperature = torch.tensor(self.settings.initial_temperature).log()
        self.log_temperature.requires_grad_()
        rates = self.settings
        self.actor_optimiser = torch.optim.Adam(actor.parameters(), lr=rates.actor_learning_rate)
        self.critic_optimiser = torch.optim.Adam(critic.parameters(), lr=rates.critic_learning_rate)
        self.temperature_optimiser = torch.optim.Adam(
            [self.log_temperature], lr=rates.temperature_learning_rate
        )

    def step(
        self, batch: PaddedBatch, noise: tuple[Tensor, Tensor] | None = None
    ) -> dict[str, float]:
        """One update; ``noise`` (T+1, B, 5) and (T, B, 5) fixes the sampled actions in tests."""
        temperature = self.log_temperature.detach().exp()
        state = initial_state(self.actor.config, batch.mask.shape[1])
        noise = noise or (torch.randn_like(batch.previous), torch.randn_like(batch.actions))
        squash = self.actor.config.squash
        with torch.no_grad():
            mean, log_std, _ = self.actor(batch.observations, batch.previous, state)
            following, density = sample(mean, log_std, noise[0], squash)
            values, _ = self.target(batch.observations, batch.previous, following, state)
            value = values.amin(dim=0) - temperature * density
            ongoing = self.settings.discount * (1.0 - batch.terminated)
            targets = batch.rewards + ongoing * value[1:]
        observations, previous = batch.observations[:-1], batch.previous[:-1]
        values, _ = self.critic(observations, previous, batch.actions, state)
        steps = batch.mask.sum()
        critic_loss = ((values - targets).square() * batch.mask).sum() / steps
        self.critic_optimiser.zero_grad()
        critic_loss.backward()
        self.critic_optimiser.step()

        mean, log_std, _ = self.actor(observations, previous, state)
        action, density = sample(mean, log_std, noise[1], squash)
        values, _ = self.critic(observations, previous, action, state)
        actor_loss = ((temperature * density - values.amin(dim=0)) * batch.mask).sum() / steps
        self.actor_optimiser.zero_grad()
        actor_loss.backward()
        self.actor_optimiser.step()

        gap = ((density.detach() + self.settings.target_entropy) * batch.mask).sum() / steps
        self.temperature_optimiser.zero_grad()
        (-self.log_temperature.exp() * gap).backward()
        self.temperature_optimiser.step()
        pairs = zip(self.target.parameters(), self.critic.parameters(), strict=True)
        with torch.no_grad():
            for old, new in pairs:
                old.lerp_(new, self.settings.tau)
        return {
            "critic_loss": float(critic_loss.detach()),
            "actor_loss": float(actor_loss.detach()),
            "temperature": float(self.log_temperature.detach().exp()),
        }


class PaddedBatch:
    """(T + 1, B) observations and previous actions, (T, B) transitions and their mask."""

    def __init__(
        self,
        observations: Tensor,
        previous: Tensor,
        actions: Tensor,
        rewards: Tensor,
        terminated: Tensor,
        mask: Tensor,
    ) -> None:
        self.observations, self.previous, self.actions = observations, previous, actions
        self.rewards, self.terminated, self.mask = rewards, terminated, mask


def pad(batch: EpisodeBatch) -> PaddedBatch:
    """The padded twin of a packed batch."""
    layout = batch.layout
    episodes, steps = len(layout.order), len(layout.step_counts)
    at_frame = (layout.frame_time, layout.frame_episode)
    at_step = (layout.step_time, layout.step_episode)
    depth_m = batch.depth_m
    size = depth_m.shape[-1]
    observations = torch.zeros(steps + 1, episodes, 2, size, size)
    observations[at_frame] = torch.stack(
        [depth_m, batch.holding[:, None, None].expand_as(depth_m)], dim=1
    )
    previous = torch.zeros(steps + 1, episodes, 5)
    previous[at_frame] = layout.previous_actions(batch.executed_actions)
    actions = torch.zeros(steps, episodes, 5)
    actions[at_step] = batch.requested_actions
    numbers = [torch.zeros(steps, episodes) for _ in range(3)]
    for target, values in zip(
        numbers, (batch.rewards, batch.terminated, torch.ones(layout.n_steps)), strict=True
    ):
        target[at_step] = values
    return PaddedBatch(observations, previous, actions, *numbers)


def update_operations(config: NetworkConfig, frames: int, steps: int) -> float:
    """Floating-point operations of the encoders in one update (they are nearly all of it)."""
    size, source, first, rest = config.observation_size, 1, 0.0, 0.0
    for layer, (width, kernel, stride) in enumerate(
        zip(config.encoder_channels, config.encoder_kernels, config.encoder_strides, strict=True)
    ):
        size = (size - kernel) // stride + 1
        operations = 2.0 * size**2 * width * source * kernel**2
        first, rest = (operations, rest) if layer == 0 else (first, rest + operations)
        source = width
    total = 0.0
    for name, (forward, weight, data) in _PASSES.items():
        count = steps if name in ("critic", "updated critic") else frames
        total += count * (first * (forward + weight) + rest * (forward + weight + data))
    return total


def matmul_peak(size: int = 1536, repeats: int = 8) -> float:
    """Best measured rate of a dense float32 product on this machine [operations / s]."""
    left = torch.randn(size, size)
    best = min(_timed(lambda: left @ left) for _ in range(repeats))
    return 2.0 * size**3 / best


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _report(repeats: int, full: StageTimer, full_s: float, demo: StageTimer, demo_s: float) -> None:
    table = Table(title="One update, mean seconds per part")
    for column in ("part", "32 x 50 steps", "demo lengths"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for name, seconds in full.seconds.items():
        table.add_row(
            name, f"{seconds / repeats:.3f}", f"{demo.seconds.get(name, 0.0) / repeats:.3f}"
        )
    table.add_row("whole update (median)", f"{full_s:.3f}", f"{demo_s:.3f}", style="bold")
    Console(stderr=True).print(table)


def _parse(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="equi-bench update",
        description="Time one actor + critic update. Example: equi-bench update --repeats 5",
    )
    parser.add_argument("--group", default="C4", choices=GROUP_CHOICES)
    parser.add_argument(
        "--agent", default="equivariant", choices=[item.value for item in Combination]
    )
    parser.add_argument("--repeats", type=int, default=5, help="updates timed on each side")
    parser.add_argument("--threads", type=int, default=0, help="0: torch's default")
    parser.add_argument("--skip-escnn", action="store_true", help="time the fast path only")
    parsed = parser.parse_args(options)
    if parsed.repeats < 1:
        parser.error(f"--repeats {parsed.repeats}: must be at least 1")
    return parsed
