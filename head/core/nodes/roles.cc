#include "head/core/nodes/roles.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "runtime/base/rank_actor.h"

namespace troupe::head {
namespace {

constexpr std::size_t kUserNameMax = 64;

std::string RankText(const wire::Relay& relay) {
  return "rank " + std::to_string(relay.rank) + " of launch " + relay.launch.Short();
}

// A rank of an epoch that is over is answered by the completion marker's protocol: that it is
// fenced, or how it ended.
bool OfTheMarker(const wire::Body& body) {
  return wire::Holds<wire::AcquireDriver>(body) || wire::Holds<wire::RenewDriver>(body) ||
         wire::Holds<wire::Complete>(body) || wire::Holds<wire::WaitMarker>(body);
}

std::optional<Refusal> AsRank(Turn& turn, const Node& node, const wire::Relay& relay,
                              const wire::Body& body, Request* request) {
  Launch* launch = turn.FindLaunch(relay.launch);
  if (launch == nullptr || relay.epoch != launch->epoch) {
    if (OfTheMarker(body)) return std::nullopt;
    return Refusal{
        ErrorCode::kFenced,
        "epoch " + std::to_string(relay.epoch) + " of launch " + relay.launch.Short() + " is over" +
            (launch == nullptr ? "" : "; the current one is " + std::to_string(launch->epoch))};
  }
  const auto rank = static_cast<std::uint32_t>(relay.rank);
  const bool placed =
      rank < launch->ranks.size() && launch->ranks[rank].node == node.id &&
      (relay.actor.IsNil() || relay.actor == RankActorId(relay.launch, relay.epoch, rank));
  if (!placed) {
    return Refusal{ErrorCode::kInvalid, RankText(relay) + " is not on node " + node.name +
                                            ": its worker may not speak for it"};
  }
  ProcessId& process = launch->ranks[rank].process;
  const auto known = turn.state.rank_processes.find(relay.process);
  const bool another = process.IsNil() ? known != turn.state.rank_processes.end() ||
                                             IsSomebody(turn.state, relay.process)
                                       : process != relay.process;
  if (another || relay.process.IsNil()) {
    return Refusal{ErrorCode::kInvalid,
                   "process " + relay.process.Short() + " is not " + RankText(relay)};
  }
  if (process.IsNil() && launch->on_nodes()) {
    process = relay.process;
    turn.state.rank_processes[process] = {launch->id, rank};
  }
  request->line = LineOf(*launch);
  request->token = launch->token;
  request->user = launch->user;
  return std::nullopt;
}

std::optional<Refusal> AsActor(Turn& turn, const Node& node, const wire::Relay& relay,
                               Request* request) {
  const Actor* actor = turn.FindActor(relay.actor);
  if (actor == nullptr || !actor->live() || actor->place.node != node.id) {
    return Refusal{ErrorCode::kFenced, "the head has no actor " + relay.actor.Short() +
                                           " on node " + node.name +
                                           ": it has ended, or is elsewhere"};
  }
  if (relay.launch != actor->launch || relay.epoch != actor->epoch) {
    return Refusal{ErrorCode::kInvalid,
                   "actor " + relay.actor.Short() + " is not of launch " + relay.launch.Short()};
  }
  request->line = LineOf(*actor);
  request->token = actor->token;
  request->user = actor->user;
  return std::nullopt;
}

// Decides whether a message concerns the sender's own objects, for roles that may act on those
// alone.
class Ownership {
 public:
  Ownership(Turn& turn, const Request& request) : t_(turn), r_(request) {}

  bool operator()(const wire::SubmitLaunch& m) {
    const auto known = t_.state.requests.find(m.request);
    return known == t_.state.requests.end() || OfLaunch(known->second);
  }
  bool operator()(const wire::CancelLaunch& m) { return OfLaunch(m.launch); }
  bool operator()(const wire::GetResult& m) { return OfLaunch(m.launch); }
  // The handler reports why not
  bool operator()(const wire::AcquireDriver& m) { return Drives(m.launch, m.epoch) || r_.rank > 0; }
  bool operator()(const wire::RenewDriver& m) { return Drives(m.launch, m.epoch); }
  bool operator()(const wire::Complete& m) { return Drives(m.launch, m.epoch); }
  bool operator()(const wire::KillActor& m) { return OfActor(m.actor); }
  bool operator()(const wire::CreateActor& m) { return OfGroup(m.spec.group); }
  bool operator()(const wire::CreateGroup& m) { return OfGroup(m.group); }
  bool operator()(const wire::RemoveGroup& m) { return OfGroup(m.group); }
  bool operator()(const wire::KvPut& m) { return OfKey(m.scope, m.key); }
  bool operator()(const wire::KvGet& m) { return OfKey(m.scope, m.key); }
  bool operator()(const wire::KvDelete& m) { return OfKey(m.scope, m.key); }
  // To say that a handle is where it is not counted changes something.
  bool operator()(const wire::WatchActor& m) { return !m.uncounted; }
  bool operator()(const wire::SetQuota&) { return IsAdministrator(t_, r_); }
  /// Messages that name nothing, or only ids that their handler compares with the sender.
  template <class Other>
  bool operator()(const Other&) {
    return true;
  }

 private:
  bool Drives(const LaunchId& launch, std::uint64_t epoch) const {
    return launch == r_.launch && epoch == r_.epoch && r_.rank == 0;
  }
  // A missing launch belongs to nobody: its handler reports that.
  bool OfLaunch(const LaunchId& id) {
    const Launch* launch = t_.FindLaunch(id);
    return launch == nullptr || Mine(launch->id, LineOf(*launch));
  }
  bool OfActor(const ActorId& id) {
    const Actor* actor = t_.FindActor(id);
    return actor == nullptr || Mine(actor->launch, LineOf(*actor));
  }
  bool OfGroup(const GroupId& id) {
    const Group* group = t_.FindGroup(id);
    return group == nullptr || Mine(group->spec.launch, LineOf(t_, *group));
  }
  bool OfKey(const std::string& scope, const std::string& key) {
    const auto value = t_.state.values.find({scope, key});
    return value == t_.state.values.end() || OwnsValue(r_, value->second);
  }
  bool Mine(const LaunchId& launch, const OwnerId& line) const {
    return line == r_.line || (!launch.IsNil() && launch == r_.launch);
  }

  Turn& t_;
  const Request& r_;
};

bool AnybodyMay(std::size_t kind) {
  const auto& may = wire::kRolesByKind[kind].may;
  return std::any_of(may.begin(), may.end(), [](May each) { return each != May::kNever; });
}

std::string Never(Speaker speaker, const wire::Body& body) {
  const std::string kind(wire::NameOf(body));
  if (!AnybodyMay(body.index())) return kind + " is not a request to the head";
  switch (speaker) {
    case Speaker::kObserver:
      return "an observer may look, not change: " + kind +
             " is refused\n  use a token of the role client";
    case Speaker::kWorker:
      return "a worker speaks for its node and carries what its processes ask: " + kind +
             " is refused\n  use a token of the "
             "role client";
    case Speaker::kRelayed:
      return "a rank or an actor may not say " + kind +
             "\n  a client may: run it where you call troupe.init()";
    case Speaker::kProcess:
      return "a rank or an actor asks the head through its worker, not by its certificate: " +
             kind + " is refused";
    case Speaker::kClient:
    case Speaker::kJoin:
      break;
  }
  return "only a worker says " + kind;
}

}  // namespace

bool IsAdministrator(const Turn& turn, const Request& request) {
  return request.role == wire::Role::kClient && request.user == turn.state.users.self;
}

std::string ObjectionToUser(const std::string& name) {
  const bool starts = !name.empty() && std::isalnum(static_cast<unsigned char>(name[0])) != 0;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char each) {
    return each < 0x80 && (std::isalnum(each) != 0 || std::string("._-+@").find(
                                                          static_cast<char>(each)) !=
                                                          std::string::npos);
  });
  if (starts && plain && name.size() <= kUserNameMax) return {};
  return "the name of an owner begins with a letter or digit, goes on with letters, digits and any "
         "of . _ - + @, and has at most " +
         std::to_string(kUserNameMax) + " characters";
}

Speaker SpeakerOf(wire::Role role, bool relayed) {
  if (relayed) return role == wire::Role::kWorker ? Speaker::kRelayed : Speaker::kJoin;
  switch (role) {
    case wire::Role::kClient:
      return Speaker::kClient;
    case wire::Role::kWorker:
      return Speaker::kWorker;
    case wire::Role::kProcess:
      return Speaker::kProcess;
    case wire::Role::kObserver:
      return Speaker::kObserver;
    case wire::Role::kNone:
    case wire::Role::kHead:
      break;
  }
  return Speaker::kJoin;
}

std::optional<Refusal> Identify(Turn& turn, const MessageFrom& input, const Session& session,
                                Request* request) {
  request->route.session = input.session;
  request->id = input.message.id;
  request->role = session.role;
  if (!input.relay) {
    request->owner = OwnerId(session.subject);
    request->line = request->owner;
    request->token = session.token;
    request->user = session.user;
    return std::nullopt;
  }
  const wire::Relay& relay = *input.relay;
  request->role = wire::Role::kProcess;
  request->route.process = relay.process;
  request->launch = relay.launch;
  request->epoch = relay.epoch;
  request->rank = relay.rank;
  request->actor = relay.actor;
  // An actor owns by its own id, which outlives a restart of the head. A rank of a driver launch
  // has such an id too, but owns as the process it is: pushes that were lost are told it again by
  // that.
  request->owner = relay.rank < 0 ? OwnerId(relay.actor.hi, relay.actor.lo) : relay.process;
  const Node* node = turn.SeeNode(session.node);
  if (session.role != wire::Role::kWorker || node == nullptr) {
    return Refusal{ErrorCode::kInvalid, "only the worker of a node carries what processes ask"};
  }
  return relay.rank >= 0 ? AsRank(turn, *node, relay, input.message.body, request)
                         : AsActor(turn, *node, relay, request);
}

std::optional<Refusal> ObjectionTo(Turn& turn, Speaker speaker, const Request& request,
                                   const wire::Body& body) {
  switch (wire::MayOf(speaker, body.index())) {
    case May::kAny:
      return std::nullopt;
    case May::kNever:
      return Refusal{ErrorCode::kInvalid, Never(speaker, body)};
    case May::kOwn:
      break;
  }
  if (wire::Visit(Ownership(turn, request), body)) return std::nullopt;
  if (wire::Holds<wire::SetQuota>(body)) {
    return Refusal{ErrorCode::kInvalid,
                   "only the administrator of this cluster sets quotas: the user that its head "
                   "runs as (" + turn.state.users.self + "). You are " + request.user +
                       "\n  on the head's host, as that user, run: troupe quota set ..."};
  }
  if (speaker != Speaker::kRelayed) return Refusal{ErrorCode::kInvalid, Never(speaker, body)};
  return Refusal{ErrorCode::kInvalid,
                 std::string(wire::NameOf(body)) +
                     ": what it names belongs to another client, and a rank or an actor acts only "
                     "on what its own client, or what that one made, has made\n  any client may: "
                     "run it where you call troupe.init()"};
}

OwnerId LineOf(const Launch& launch) {
  if (!launch.line.IsNil()) return launch.line;  // nil: journaled before lines were
  return launch.owner.IsNil() ? OwnerId(launch.id.hi, launch.id.lo) : launch.owner;
}

OwnerId LineOf(const Actor& actor) {
  if (!actor.line.IsNil()) return actor.line;
  return actor.owner.IsNil() ? OwnerId(actor.spec.actor.hi, actor.spec.actor.lo) : actor.owner;
}

OwnerId LineOf(Turn& turn, const Group& group) {
  if (!group.spec.line.IsNil()) return group.spec.line;
  const Launch* launch = turn.FindLaunch(group.spec.launch);
  if (launch != nullptr) return LineOf(*launch);
  const Actor* actor = turn.FindActor(group.spec.actor);
  if (actor != nullptr) return LineOf(*actor);
  return group.spec.owner.IsNil() ? OwnerId(group.spec.group.hi, group.spec.group.lo)
                                  : group.spec.owner;
}

bool OwnsValue(const Request& request, const Value& value) {
  return request.role == wire::Role::kClient || (!value.line.IsNil() && value.line == request.line);
}

bool WasOn(const Turn& turn, const NodeId& node, const ProcessId& process) {
  const State& state = turn.state;
  const auto placed_there = [&](const LaunchId& id, const std::uint32_t* rank) {
    const auto launch = state.launches.find(id);
    if (launch == state.launches.end()) return false;
    const auto& ranks = launch->second.ranks;
    if (rank != nullptr) return *rank < ranks.size() && ranks[*rank].node == node;
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const Rank& each) { return each.node == node; });
  };
  if (const auto known = state.rank_processes.find(process); known != state.rank_processes.end()) {
    return placed_there(known->second.first, &known->second.second);
  }
  if (IsSomebody(state, process)) return false;
  // The process has asked for nothing since this head started: only a rank owns by its process, and
  // it did so in its launch.
  for (const auto& [id, actor] : state.actors) {
    if (actor.owner == process && !placed_there(actor.launch, nullptr)) return false;
  }
  for (const auto& [id, group] : state.groups) {
    if (group.spec.owner == process && !placed_there(group.spec.launch, nullptr)) return false;
  }
  return std::none_of(state.launches.begin(), state.launches.end(),
                      [&](const auto& each) { return each.second.owner == process; });
}

bool IsSomebody(const State& state, const Id128& id) {
  return state.owners.count(OwnerId(id)) > 0 || state.actors.count(ActorId(id)) > 0 ||
         state.rank_processes.count(ProcessId(id)) > 0;
}

}  // namespace troupe::head
