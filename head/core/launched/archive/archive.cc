#include "head/core/launched/archive/archive.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "head/core/launched/archive/launch_list.h"
#include "head/core/machine/apply.h"
#include "head/core/machine/job_terms.h"
#include "head/core/machine/lived_time.h"
#include "head/core/machine/snapshot.h"
#include "head/core/nodes/roles.h"
#include "runtime/wire/role_table.h"

namespace troupe::head {
namespace {

// In one transaction of the archive. A commit costs as much for one record as for hundreds; more at
// once would hold up the head's loop and requests for records.
constexpr std::size_t kMoveLeast = 64;
constexpr std::size_t kMoveMost = 512;
// After records could not be written.
constexpr Duration kWriteAgain = std::chrono::seconds(1);

// The launch that a request is about, of the requests that launches which are over are asked for
// by.
struct AskedLaunch {
  LaunchId operator()(const wire::GetLaunch& m) const { return m.launch; }
  LaunchId operator()(const wire::WatchLaunch& m) const { return m.launch; }
  LaunchId operator()(const wire::GetResult& m) const { return m.launch; }
  LaunchId operator()(const wire::WaitMarker& m) const { return m.launch; }
  LaunchId operator()(const wire::CancelLaunch& m) const { return m.launch; }
  template <class Other>
  LaunchId operator()(const Other&) const {
    return LaunchId();
  }
};

std::optional<ArchiveQuery> NeedOfList(const State& state, const wire::ListLaunches& list) {
  if (list.limit == 0 || list.open_only || list.in_memory) return std::nullopt;
  ArchiveQuery query;
  // A further one tells whether there is more
  query.limit = std::min<std::size_t>(list.limit, kLaunchPageMax) + 1;
  if (!list.request.IsNil()) {
    if (state.requests.count(list.request) > 0) return std::nullopt;
    query.by = ArchiveQuery::By::kRequest;
    query.request = list.request;
  } else if (!list.prefix.empty()) {
    query.by = ArchiveQuery::By::kPrefix;
    query.text = list.prefix;
  } else {
    query.since_us = list.since_us;
    query.before_us = list.before_us;
    query.before = list.before;
  }
  return query;
}

// Returns what has to be read for this request; nullopt: nothing.
std::optional<ArchiveQuery> NeedOf(const State& state, const wire::Body& body) {
  ArchiveQuery query;
  if (const auto* list = wire::GetIf<wire::ListLaunches>(&body)) return NeedOfList(state, *list);
  if (const auto* submit = wire::GetIf<wire::SubmitLaunch>(&body)) {
    if (submit->request.IsNil() || state.requests.count(submit->request) > 0) return std::nullopt;
    if (!IsRepeatable(submit->spec) && !state.ended.moved.Has(submit->request))
      return std::nullopt;
    query.by = ArchiveQuery::By::kRequest;
    query.request = submit->request;
    query.limit = 1;
    return query;
  }
  query.by = ArchiveQuery::By::kLaunch;
  query.launch = wire::Visit(AskedLaunch(), body);
  if (query.launch.IsNil() || state.launches.count(query.launch) > 0) return std::nullopt;
  return query;
}

void ArmRetention(Turn& turn) {
  EndedLaunches& ended = turn.state.ended;
  if (ended.timer_armed || ended.empty()) return;
  ended.timer_armed = true;
  const std::uint64_t due_us = ended.OldestLivedUs() + turn.options.retention_us;
  const std::uint64_t lived_us = LivedUs(turn.state, turn.now);
  const std::uint64_t left_us =
      std::min(due_us > lived_us ? due_us - lived_us : 0, turn.options.retention_us);
  turn.Arm(turn.now + std::chrono::microseconds(left_us), TimerKind::kRetention, Id128{});
}

void ArmWriteAgain(Turn& turn) {
  if (std::exchange(turn.state.ended.write_armed, true)) return;
  turn.Arm(turn.now + kWriteAgain, TimerKind::kArchive, Id128{});
}

// The memory of a burst is given back though nothing moves after it.
void ArmForget(Turn& turn) {
  EndedLaunches& ended = turn.state.ended;
  if (ended.moved.empty() || std::exchange(ended.forget_armed, true)) return;
  const std::uint64_t until_us = ended.moved.NewestUntilUs();
  const std::uint64_t lived_us = LivedUs(turn.state, turn.now);
  const std::uint64_t left_us = until_us > lived_us ? until_us - lived_us : 0;
  turn.Arm(turn.now + std::chrono::microseconds(left_us + 1), TimerKind::kMoved, Id128{});
}

// Returns true while a client that got no answer may still repeat the submission of this launch.
bool MayBeRepeated(const Turn& turn, const Launch& launch) {
  return LivedUs(turn.state, turn.now) < launch.marker_lived_us + turn.options.repeats_us;
}

void Retire(Turn& turn, const Launch& launch) {
  wire::LaunchRetired retired;
  retired.launch = launch.id;
  retired.outcome = launch.marker->outcome;
  retired.exit_code = launch.marker->exit_code;
  turn.Append(retired);
}

// Puts the launch of a record into the state, for one step.
bool PutBack(State& state, const EndedRecord& record) {
  if (state.launches.count(record.launch) > 0) return false;  // had not left yet
  for (const wire::Event& event : record.events) Apply(state, event);
  return state.launches.count(record.launch) > 0;
}

void TakeOut(State& state, const LaunchId& id) {
  const auto found = state.launches.find(id);
  if (found == state.launches.end()) return;
  const Launch& launch = found->second;
  state.ended.Remove(launch.marker_lived_us, id);
  const auto request = state.requests.find(launch.request);
  if (request != state.requests.end() && request->second == id) state.requests.erase(request);
  state.launches.erase(found);
}

}  // namespace

std::size_t BatchOf(std::size_t ended, std::size_t keep) {
  if (ended <= keep) return 0;
  return std::clamp(ended - keep, std::min(kMoveLeast, keep / 2 + 1), kMoveMost);
}

std::vector<LaunchId> EndedLaunches::BeginMove(std::size_t keep) {
  std::vector<LaunchId> oldest;
  if (!moving_.empty()) return oldest;
  const std::size_t batch = BatchOf(order_.size(), keep);
  for (const auto& [lived_us, launch] : order_) {
    if (oldest.size() == batch) break;
    oldest.push_back(launch);
  }
  moving_.insert(oldest.begin(), oldest.end());
  return oldest;
}

std::vector<LaunchId> EndedLaunches::Latest(std::size_t count) const {
  std::vector<LaunchId> latest;
  for (auto each = order_.rbegin(); each != order_.rend() && latest.size() < count; ++each)
    latest.push_back(each->second);
  return latest;
}

EndedRecord RecordOf(const Launch& launch) {
  EndedRecord record;
  record.launch = launch.id;
  if (IsRepeatable(launch.spec)) record.request = launch.request;
  record.job = JobIdOf(launch.spec);
  record.submitted_us = launch.submitted_us;
  record.lived_us = launch.marker_lived_us;
  record.events = EventsOf(launch);
  return record;
}

void ArchiveEnded(Turn& turn) {
  ArmRetention(turn);
  EndedLaunches& ended = turn.state.ended;
  if (!turn.options.archives || turn.state.read_only || ended.write_armed) return;
  for (const LaunchId& id : ended.BeginMove(turn.options.ended_max)) {
    const Launch& launch = *turn.FindLaunch(id);
    EndedRecord record = RecordOf(launch);
    if (MayBeRepeated(turn, launch)) record.request = launch.request;
    turn.archive.push_back(std::move(record));
  }
}

void OnArchived(Turn& turn, const Archived& input) {
  turn.state.ended.EndMove();
  if (!input.durable) {
    ArmWriteAgain(turn);
    return;
  }
  EndedLaunches& ended = turn.state.ended;
  ended.moved.DropBefore(LivedUs(turn.state, turn.now));
  for (const LaunchId& id : input.launches) {
    const Launch* launch = turn.FindLaunch(id);
    if (launch == nullptr || launch->open()) continue;
    if (MayBeRepeated(turn, *launch))
      ended.moved.Add(launch->request, launch->marker_lived_us + turn.options.repeats_us);
    Retire(turn, *launch);
  }
  ArmForget(turn);
  ArchiveEnded(turn);
}

void OnArchiveTimer(Turn& turn) {
  turn.state.ended.write_armed = false;
  ArchiveEnded(turn);
}

void OnMovedTimer(Turn& turn) {
  turn.state.ended.forget_armed = false;
  turn.state.ended.moved.DropBefore(LivedUs(turn.state, turn.now));
  ArmForget(turn);
}

void RememberMoved(Turn& turn) {
  const std::uint64_t until_us = LivedUs(turn.state, turn.now) + turn.options.repeats_us;
  for (const RequestId& request : turn.options.moved) turn.state.ended.moved.Add(request, until_us);
  ArmForget(turn);
}

void OnRetentionTimer(Turn& turn) {
  EndedLaunches& ended = turn.state.ended;
  ended.timer_armed = false;
  const std::uint64_t lived_us = LivedUs(turn.state, turn.now);
  while (!ended.empty() && ended.OldestLivedUs() + turn.options.retention_us <= lived_us)
    Retire(turn, *turn.FindLaunch(ended.Oldest()));
  ArmRetention(turn);
}

bool HoldForRecall(Turn& turn, const MessageFrom& input) {
  if (!turn.options.archives) return false;
  const auto session = turn.state.sessions.find(input.session);
  if (session == turn.state.sessions.end()) return false;
  std::optional<ArchiveQuery> query = NeedOf(turn.state, input.message.body);
  if (!query) return false;
  const Speaker speaker = SpeakerOf(session->second.role, input.relay.has_value());
  if (wire::MayOf(speaker, input.message.body.index()) == May::kNever) return false;
  const std::optional<std::uint64_t> ticket = turn.state.recalls.Add(input);
  if (!ticket) {
    Request request;
    if (!Identify(turn, input, session->second, &request)) {
      turn.Refuse(request, ErrorCode::kTooLarge,
                  "it waits for " + std::to_string(Recalls::kRecallsMax) +
                      " records of launches that are over already (kRecallsMax), or its requests "
                      "that wait for some have more than " +
                      std::to_string(Recalls::kRecallBytesMax >> 20) + " MiB (kRecallBytesMax)");
    }
    return true;
  }
  turn.recalls.push_back({input.session, *ticket, *std::move(query)});
  return true;
}

void OnRecalled(Turn& turn, const Recalled& input, Answer answer) {
  const std::optional<MessageFrom> request = turn.state.recalls.Take(input.session, input.ticket);
  if (!request) return;  // the session is over
  std::vector<LaunchId> put_back;
  for (const EndedRecord& record : input.records) {
    if (PutBack(turn.state, record)) put_back.push_back(record.launch);
  }
  if (input.error.empty()) {
    answer(turn, *request);
  } else {
    Request asked;
    const auto session = turn.state.sessions.find(input.session);
    if (session != turn.state.sessions.end() && !Identify(turn, *request, session->second, &asked))
      turn.Refuse(asked, ErrorCode::kInternal,
                  "the head cannot read its archive of launches that are over: " + input.error);
  }
  for (const LaunchId& id : put_back) TakeOut(turn.state, id);
}

}  // namespace troupe::head
