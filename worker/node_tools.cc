// The part of Node that reads its processes from outside, for whoever asks.
#include <utility>

#include "worker/node.h"

namespace troupe::worker {
namespace {

constexpr char kStacks[] = "troupe._stacks";
constexpr char kProfiles[] = "troupe._tracing.profiles";
constexpr std::uint32_t kProfileMsMax = 600'000;
constexpr std::uint32_t kSamplesPerSecondMax = 1000;
constexpr std::size_t kProfileBytesMax = 15u << 20;  // an attachment has 16 MiB
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

}  // namespace troupe::worker
