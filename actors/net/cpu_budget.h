// How much CPU this process may use, as far as it decides whether to poll. Reads /proc and cgroup
// files once per call; microseconds; never fails (unknown counts as allowed).
#pragma once

namespace troupe::actors {

/// A benchmark's choice about polling in place of the machine's; kAuto is the rule.
enum class SpinOverride { kAuto, kOn, kOff };
/// For what is created from now on in this process. Any thread.
void OverrideSpinning(SpinOverride to);

/// False with fewer than two CPUs in the affinity mask, or under a CFS quota (cgroup v1 or v2).
bool SpinningAllowed();

}  // namespace troupe::actors
