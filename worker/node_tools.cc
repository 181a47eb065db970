// The part of Node that reads its processes, and files of theirs, from outside, for whoever asks.
#include <algorithm>
#include <utility>

#include "worker/node.h"

namespace troupe::worker {
namespace {

constexpr char kStacks[] = "troupe._tracing.stacks";
constexpr char kProfiles[] = "troupe._tracing.profiles";
constexpr std::uint32_t kProfileMsMax = 600'000;
constexpr std::uint32_t kSamplesPerSecondMax = 1000;
constexpr std::size_t kProfileBytesMax = 15u << 20;  // an attachment has 16 MiB
constexpr char kRings[] = "troupe._tracing.rings";
constexpr std::uint32_t kCallsForMsMax = 600'000;
constexpr std::size_t kTimelineBytesMax = 15u << 20;
constexpr Duration kToolLimit = std::chrono::seconds(90);

ToolRun StackRun(std::vector<std::string> targets, bool native) {
  ToolRun run;
  run.module = kStacks;
  if (native) run.arguments.emplace_back("--native");
  for (std::string& each : targets) run.arguments.push_back(std::move(each));
  run.limit = kToolLimit;
  run.what = "stacks";
  run.fewer = "ask for one --rank";
  return run;
}

ToolRun ProfileRun(std::vector<std::string> targets, const wire::ReadProfile& request) {
  ToolRun run;
  run.module = kProfiles;
  run.arguments = {"--milliseconds",
                   std::to_string(request.duration_ms),
                   "--rate",
                   std::to_string(request.rate_per_s),
                   "--format",
                   wire::NameOf(request.format),
                   "--bytes-max",
                   std::to_string(kProfileBytesMax)};
  if (request.idle) run.arguments.emplace_back("--idle");
  if (request.native) run.arguments.emplace_back("--native");
  if (request.subprocesses) run.arguments.emplace_back("--subprocesses");
  for (std::string& each : targets) run.arguments.push_back(std::move(each));
  run.limit = std::chrono::milliseconds(request.duration_ms) + kToolLimit;
  run.bytes_max = kProfileBytesMax;
  run.what = "profiles";
  run.fewer = "ask for one --rank, or for fewer --seconds";
  return run;
}

ToolRun RingRun(const wire::ReadTimeline& request, const std::vector<std::string>& folders) {
  ToolRun run;
  run.module = kRings;
  const std::size_t asked = request.bytes_max == 0 ? kTimelineBytesMax : request.bytes_max;
  run.bytes_max = kTimelineBytesMax;
  run.arguments = {"--since-ms", std::to_string(request.since_ms), "--bytes-max",
                   std::to_string(std::min(asked, kTimelineBytesMax))};
  if (!request.launch.IsNil()) {
    run.arguments.insert(run.arguments.end(), {"--launch", request.launch.Hex()});
  }
  if (!request.actor.IsNil()) {
    run.arguments.insert(run.arguments.end(), {"--actor", request.actor.Hex()});
  }
  if (request.calls_every != 0) {
    const std::uint32_t for_ms = std::min(request.calls_for_ms, kCallsForMsMax);
    run.arguments.insert(run.arguments.end(),
                         {"--calls-every", std::to_string(request.calls_every), "--calls-for-ms",
                          std::to_string(for_ms)});
  }
  for (const std::string& each : folders) run.arguments.push_back(each);
  run.limit = kToolLimit;
  run.what = "spans";
  run.fewer = "ask for fewer --seconds";
  return run;
}

}  // namespace

StatusOr<std::vector<std::string>> Node::ToolTargets(const LaunchId& launch, const ActorId& actor,
                                                     std::int32_t rank) const {
  if (launch.IsNil() && actor.IsNil()) {
    return MakeError(ErrorCode::kInvalid,
                     "name the launch or the actor whose processes are to be read");
  }
  std::vector<std::string> targets;
  if (!core_) return targets;
  for (const auto& [id, process] : core_->processes().all()) {
    const bool wanted = actor.IsNil()
                            ? process.kind == wire::ProcessKind::kRank &&
                                  process.launch == launch && (rank < 0 || process.rank == rank)
                            : process.actor == actor;
    if (!wanted || process.pid == 0 || process.exited) continue;
    targets.push_back(std::to_string(process.rank) + ":" + std::to_string(process.pid));
  }
  return targets;
}

async::Task<StatusOr<wire::Message>> Node::Stacks(wire::ReadStacks request) {
  TROUPE_CO_ASSIGN(std::vector<std::string> targets,
                   ToolTargets(request.launch, request.actor, request.rank));
  wire::StackDump dump;
  dump.processes = static_cast<std::uint32_t>(targets.size());
  wire::Message answer;
  answer.body = dump;
  if (!targets.empty()) {
    ToolRun run = StackRun(std::move(targets), request.native);
    TROUPE_CO_ASSIGN(answer.attachment, co_await tools_->Run(std::move(run)));
  }
  co_return answer;
}

async::Task<StatusOr<wire::Message>> Node::Profile(wire::ReadProfile request) {
  TROUPE_CO_ASSIGN(std::vector<std::string> targets,
                   ToolTargets(request.launch, request.actor, request.rank));
  if (request.duration_ms == 0 || request.duration_ms > kProfileMsMax || request.rate_per_s == 0 ||
      request.rate_per_s > kSamplesPerSecondMax) {
    co_return MakeError(ErrorCode::kInvalid,
                        "a profile lasts up to 600 s and has 1 to 1,000 samples a second");
  }
  wire::ProfileDump dump;
  dump.processes = static_cast<std::uint32_t>(targets.size());
  wire::Message answer;
  answer.body = dump;
  if (!targets.empty()) {
    ToolRun run = ProfileRun(std::move(targets), request);
    TROUPE_CO_ASSIGN(answer.attachment, co_await tools_->Run(std::move(run)));
  }
  co_return answer;
}

async::Task<StatusOr<wire::Message>> Node::Timeline(wire::ReadTimeline request) {
  wire::TimelinePart part;
  part.received_ns = static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count());
  wire::Message answer;
  if (request.since_ms != 0) {
    // Programs of this user on this host have their rings beside the folders of workers.
    const std::vector<std::string> folders = {files_.rings().folder(),
                                              options_.socket_dir + "/rings"};
    ToolRun run = RingRun(request, folders);
    TROUPE_CO_ASSIGN(answer.attachment, co_await tools_->Run(std::move(run)));
  }
  part.answered_ns = static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count());
  answer.body = part;
  co_return answer;
}

}  // namespace troupe::worker
