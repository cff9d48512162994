"""The part of `FeatureContract` about what hooks cost: time, and input and output."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from delta_core.errors import DeltaError, PluginError
from delta_core.testing.contract_base import ContractBase
from delta_core.testing.hook_costs import (
    SIZES,
    call_hook,
    failed_follow_ups,
    hook_arguments,
    measure_hooks,
    smallest_loop_seconds,
    watched_io,
)

__all__ = ["CostContract"]

#: How many times the processor time of the smallest loop over files a hook may take per file: many times that of
#: functions of whole columns, less than that of loops over rows. Both depend on the machine, their ratio little.
_SMALLEST_LOOPS = 5
#: The least time of several calls of a hook, with waits.
_SECONDS_PER_CALL = 0.2


class CostContract(ContractBase):
    """Tests that hooks take no time per file, wait for nothing, and leave files and networks alone."""

    def test_hooks_do_no_input_and_output(self) -> None:
        plugins = self.alone()
        for state in self.writable():
            for hook, arguments in hook_arguments(state, plugins, 2).items():
                # the first call may import modules
                with suppress(DeltaError):
                    call_hook(plugins, hook, arguments)
                with watched_io() as found:
                    try:
                        call_hook(plugins, hook, arguments)
                    except PluginError:
                        # it failed, or its result is wrong: the message looks up the distribution, which is not
                        # input of the hook
                        raise
                    except DeltaError:
                        pass
                if found:
                    self.fault(
                        hook,
                        f"it does input or output: {', '.join(dict.fromkeys(found))}. Hooks take what they need from "
                        "their arguments; work on files belongs into an operation, or into rules, which the core runs",
                    )

    def test_hooks_take_no_time_per_file(self) -> None:
        # before and after the hooks: what else runs on the machine meanwhile may come or go
        before = smallest_loop_seconds()
        costs = measure_hooks(self.alone(), self.writable())
        limit = _SMALLEST_LOOPS * min(before, smallest_loop_seconds())
        for cost in costs:
            if cost.wall_seconds > _SECONDS_PER_CALL:
                self.fault(
                    cost.hook,
                    f"the fastest of its calls took {cost.wall_seconds:.2f} s, expected less than "
                    f"{_SECONDS_PER_CALL} s: it is called for each scan, commit or change of metadata",
                )
            if cost.seconds_per_file > limit:
                self.fault(
                    cost.hook,
                    f"it takes {cost.seconds_per_file * 1e6:.2f} microseconds per file ("
                    f"{cost.seconds[0] * 1e3:.1f} ms for {SIZES[0]:,} files, {cost.seconds[-1] * 1e3:.1f} ms for "
                    f"{SIZES[-1]:,}), expected less than "
                    f"{limit * 1e6:.2f} microseconds on this machine: use functions of whole columns",
                )

    def test_hook_after_commit_does_not_fail(self, tmp_path: Path) -> None:
        for i, example in enumerate([] if self.not_written else self.tables()):
            with failed_follow_ups() as found:
                self.make(example, tmp_path / str(i))
            for error in found:
                if getattr(error, "hook", None) == "after_commit" and getattr(error, "plugin", None) == self.name:
                    self.fault("after_commit", f"it failed, which users see in the log only: {error}")
