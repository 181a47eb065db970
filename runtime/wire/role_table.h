// Table of who may say what to the head and to a worker: kind of message x speaker. A row for every kind of
// the wire, checked by the compiler; who has no place in a row is refused. Pure data, read before
// any handler by head/core/nodes/roles.h and by worker/peer_server.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "runtime/wire/messages.h"

namespace troupe::wire {

/// As whom a message comes to the head.
enum class Speaker : std::uint8_t {
  kClient,   // a client's session
  kWorker,   // a worker's own session
  kRelayed,  // a rank or an actor, carried by the worker of its node
  // a rank or an actor by its own certificate: it talks to workers and actors, never to the head
  kProcess,
  kObserver,  // an observer's session
  kJoin,  // peer that has not been let in yet (held to it by net/session.h)
};
inline constexpr std::size_t kSpeakers = 6;

enum class May : std::uint8_t {
  kNever,
  kOwn,  // with what is its own (head/core/nodes/roles.h)
  kAny,  // with what is another's, too
};

/// Roles that may ask a worker, at its Unix socket and its TLS port.
struct AtWorker {
  May client = May::kNever;
  May process = May::kNever;  // a rank or an actor
  May head = May::kNever;
  // Another node, or whoever has shown a worker's token: it fetches what it is to run, and neither
  // looks at what runs there nor leaves anything.
  May worker = May::kNever;
  May observer = May::kNever;
};

struct RoleRow {
  std::size_t kind = 0;
  std::array<May, kSpeakers> may{};  // say it to the head
  AtWorker at_worker{};
};

namespace role_rows {

constexpr May no = May::kNever, own = May::kOwn, any = May::kAny;

template <class Kind>
constexpr RoleRow Row(May client, May worker, May relayed, May process, May observer, May join) {
  return {KindOf<BodyFamily, Kind>::value, {client, worker, relayed, process, observer, join}, {}};
}
/// A question to a worker, never to the head.
template <class Kind>
constexpr RoleRow AskWorker(May client, May process, May head, May worker, May observer) {
  return {KindOf<BodyFamily, Kind>::value, {}, {client, process, head, worker, observer}};
}
/// As AskWorker, of a question to the head, too, by whoever has a session of its own with it.
template <class Kind>
constexpr RoleRow AskEither(May client, May process, May head, May worker, May observer) {
  return {KindOf<BodyFamily, Kind>::value,
          {client, no, no, no, observer, no},
          {client, process, head, worker, observer}};
}
/// All readers: every role but a bare worker, which has nothing to look for.
template <class Kind>
constexpr RoleRow Look(May observer = any) {
  return Row<Kind>(any, no, any, no, observer, no);
}
/// Clients are one trust domain; a rank or an actor may do it to its own.
template <class Kind>
constexpr RoleRow Act() {
  return Row<Kind>(any, no, own, no, no, no);
}
template <class Kind>
constexpr RoleRow Govern() {
  return Row<Kind>(any, no, no, no, no, no);
}
template <class Kind>
constexpr RoleRow OfNode() {
  return Row<Kind>(no, own, no, no, no, no);
}
/// The head's words, answers, and what passes between a worker and others.
template <class Kind>
constexpr RoleRow NotToTheHead() {
  return Row<Kind>(no, no, no, no, no, no);
}

inline constexpr RoleRow kRoles[] = {
    // client, worker, relayed, process, observer, join
    Row<Hello>(no, no, no, no, no, any),
    Row<Goodbye>(any, any, no, any, any, no),
    Row<DrainNode>(any, own, no, no, no, no),
    Row<ReportMetrics>(any, no, any, no, no, no),

    OfNode<RegisterNode>(),
    OfNode<Heartbeat>(),
    OfNode<ReserveReply>(),
    OfNode<Released>(),
    OfNode<RanksReady>(),
    OfNode<RankDone>(),
    OfNode<EpochEnded>(),
    OfNode<ActorStarted>(),
    OfNode<ActorEnded>(),
    OfNode<Relay>(),
    OfNode<ProcessGone>(),
    OfNode<PeerProbed>(),
    OfNode<WorkerHeldUp>(),
    OfNode<RanksSeen>(),
    OfNode<RankLeft>(),
    OfNode<ActorLends>(),
    OfNode<RankWhere>(),
    OfNode<GroupJoined>(),
    OfNode<RanksLate>(),
    OfNode<RankBegun>(),
    OfNode<RankAwaits>(),
    OfNode<KeepLog>(),
    OfNode<NodeMeasures>(),

    Look<WatchLaunch>(),
    Look<GetLaunch>(),
    Look<ListLaunches>(),
    Look<WaitMarker>(),
    Look<WatchActor>(own),
    Look<GetNamedActor>(),
    Look<ListActors>(),
    Look<GetGroup>(),
    Look<ListGroups>(),
    Look<GetStatus>(),
    Look<ListEvents>(),
    Look<ListTasks>(),
    Look<GetUsage>(),

    Act<SubmitLaunch>(),
    Act<CancelLaunch>(),
    Act<GetResult>(),
    Act<AcquireDriver>(),
    Act<RenewDriver>(),
    Act<Complete>(),
    Act<CreateActor>(),
    Act<KillActor>(),
    Act<CreateGroup>(),
    Act<RemoveGroup>(),
    Act<KvPut>(),
    Act<KvGet>(),
    Act<KvDelete>(),
    Act<KvList>(),
    Act<CertifyProcess>(),
    Act<TasksTold>(),

    Govern<CreateToken>(),
    Govern<ListTokens>(),
    Govern<RevokeToken>(),
    Govern<StopCluster>(),
    Row<SetQuota>(own, no, no, no, no, no),

    // Answers and orders of the head.
    NotToTheHead<Welcome>(),
    NotToTheHead<Refused>(),
    NotToTheHead<ErrorReply>(),
    NotToTheHead<Ok>(),
    NotToTheHead<NodeRegistered>(),
    NotToTheHead<HeartbeatAck>(),
    NotToTheHead<Reserve>(),
    NotToTheHead<Release>(),
    NotToTheHead<StartRanks>(),
    NotToTheHead<PublishRoster>(),
    NotToTheHead<RankDoneAck>(),
    NotToTheHead<EndEpoch>(),
    NotToTheHead<StartActor>(),
    NotToTheHead<EndActor>(),
    NotToTheHead<RelayDown>(),
    NotToTheHead<EndNode>(),
    NotToTheHead<ProbePeer>(),
    NotToTheHead<LaunchAccepted>(),
    NotToTheHead<LaunchUpdate>(),
    NotToTheHead<LaunchList>(),
    NotToTheHead<ResultValue>(),
    NotToTheHead<DriverGranted>(),
    NotToTheHead<MarkerReply>(),
    NotToTheHead<ActorUpdate>(),
    NotToTheHead<ActorList>(),
    NotToTheHead<GroupUpdate>(),
    NotToTheHead<GroupList>(),
    NotToTheHead<KvValue>(),
    NotToTheHead<KvKeys>(),
    NotToTheHead<ClusterStatus>(),
    NotToTheHead<TokenCreated>(),
    NotToTheHead<TokenList>(),
    NotToTheHead<UsageList>(),
    NotToTheHead<TokenRevoked>(),
    NotToTheHead<Revoked>(),
    NotToTheHead<ProcessCertificate>(),
    NotToTheHead<OutputOf>(),
    NotToTheHead<EventList>(),
    NotToTheHead<MetricsTaken>(),
    NotToTheHead<TellTasks>(),
    NotToTheHead<AskRanks>(),
    NotToTheHead<StopRanks>(),
    NotToTheHead<PeersLost>(),
    NotToTheHead<FormGroup>(),
    NotToTheHead<ReplaceRanks>(),
    // client, process, head, worker, observer
    AskEither<ReadLog>(any, any, any, no, any),
    AskWorker<ReadLogs>(any, any, any, no, any),
    AskWorker<ReadStacks>(any, any, any, no, no),
    AskWorker<ReadProfile>(any, any, any, no, no),
    AskWorker<ReadTimeline>(any, any, any, no, no),
    AskWorker<PutBlob>(any, any, any, no, no),
    AskWorker<GetBlob>(any, any, any, any, no),
    // Answers of a worker, and messages between it and its processes.
    NotToTheHead<LogChunk>(),
    NotToTheHead<LogParts>(),
    NotToTheHead<StackDump>(),
    NotToTheHead<ProfileDump>(),
    NotToTheHead<TimelinePart>(),
    NotToTheHead<BlobChunk>(),
    NotToTheHead<ForkRequest>(),
    NotToTheHead<ForkReply>(),
    NotToTheHead<ChildExit>(),
    NotToTheHead<ZygoteReady>(),
    NotToTheHead<RankBegin>(),
    NotToTheHead<RankPrepared>(),
    NotToTheHead<RankRun>(),
    NotToTheHead<RankResult>(),
    NotToTheHead<ProcessEnd>(),
    NotToTheHead<ActorBegin>(),
    NotToTheHead<ActorReady>(),
    NotToTheHead<StoreReady>(),
    NotToTheHead<ActorLease>(),
    NotToTheHead<ProcessStop>(),
    NotToTheHead<CpuLent>(),
    NotToTheHead<ProcessWhere>(),
    NotToTheHead<AskBegun>(),
    NotToTheHead<GroupLate>(),
    NotToTheHead<ProcessAskBegun>(),
    NotToTheHead<ProcessBegun>(),
    NotToTheHead<PeersReturned>(),
    NotToTheHead<GroupAwaits>(),
    NotToTheHead<GroupJoin>(),
    NotToTheHead<GroupFormed>(),
    NotToTheHead<RankProgram>(),
};

}  // namespace role_rows

inline constexpr std::size_t kKinds = std::size(kBodyNames);

/// The table's rows by the number of their kind.
constexpr std::array<RoleRow, kKinds> RolesByKind() {
  std::array<RoleRow, kKinds> by_kind{};
  std::array<std::size_t, kKinds> rows{};
  for (const RoleRow& row : role_rows::kRoles) {
    by_kind[row.kind] = row;
    ++rows[row.kind];
  }
  for (const std::size_t count : rows) {
    if (count != 1) throw "a kind of message without a row in kRoles, or with two";
  }
  return by_kind;
}
inline constexpr std::array<RoleRow, kKinds> kRolesByKind = RolesByKind();

/// Returns whether `speaker` may send this to the head.
constexpr May MayOf(Speaker speaker, std::size_t kind) {
  return kRolesByKind[kind].may[static_cast<std::size_t>(speaker)];
}

/// Returns true if a worker answers a request of this kind to this role.
constexpr bool MayAskWorker(Role role, std::size_t kind) {
  const AtWorker& may = kRolesByKind[kind].at_worker;
  switch (role) {
    case Role::kClient: return may.client != May::kNever;
    case Role::kProcess: return may.process != May::kNever;
    case Role::kHead: return may.head != May::kNever;
    case Role::kWorker: return may.worker != May::kNever;
    case Role::kObserver: return may.observer != May::kNever;
    default: return false;
  }
}

}  // namespace troupe::wire
