// Who may say what to the head: kind of message x speaker. A row for every kind of the wire,
// checked by the compiler; who has no place in a row is refused. Pure data; roles.h is what reads
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "runtime/wire/messages.h"

namespace troupe::head {

/// As whom a message comes to the head.
enum class Speaker : std::uint8_t {
  kClient,   // a client's session
  kWorker,   // a worker's own session
  kRelayed,  // a rank or an actor, carried by the worker of its node
  // a rank or an actor by its own certificate: it talks to workers and actors, never to the head
  kProcess,
  kObserver,  // an observer's session
  kJoin,      // who has not been let in yet (held to it by net/session.h)
};
inline constexpr std::size_t kSpeakers = 6;

enum class May : std::uint8_t {
  kNever,
  kOwn,  // with what is its own (roles.h: Owns)
  kAny,  // with what is another's, too
};

struct RoleRow {
  std::size_t kind = 0;
  std::array<May, kSpeakers> may{};
};

namespace role_rows {

constexpr May no = May::kNever, own = May::kOwn, any = May::kAny;

template <class Kind>
constexpr RoleRow Row(May client, May worker, May relayed, May process, May observer, May join) {
  return {wire::KindOf<wire::BodyFamily, Kind>::value,
          {client, worker, relayed, process, observer, join}};
}
/// Whoever looks: all but a bare worker, which has nothing to look for.
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
    Row<wire::Hello>(no, no, no, no, no, any),
    Row<wire::Goodbye>(any, any, no, any, any, no),
    Row<wire::DrainNode>(any, own, no, no, no, no),

    OfNode<wire::RegisterNode>(),
    OfNode<wire::Heartbeat>(),
    OfNode<wire::ReserveReply>(),
    OfNode<wire::Released>(),
    OfNode<wire::RanksReady>(),
    OfNode<wire::RankDone>(),
    OfNode<wire::EpochEnded>(),
    OfNode<wire::ActorStarted>(),
    OfNode<wire::ActorEnded>(),
    OfNode<wire::Relay>(),
    OfNode<wire::ProcessGone>(),
    OfNode<wire::PeerProbed>(),
    OfNode<wire::WorkerHeldUp>(),
    OfNode<wire::RanksSeen>(),
    OfNode<wire::RankLeft>(),
    OfNode<wire::ActorLends>(),
    OfNode<wire::RankWhere>(),
    OfNode<wire::GroupJoined>(),
    OfNode<wire::RanksLate>(),
    OfNode<wire::RankBegun>(),
    OfNode<wire::RankAwaits>(),

    Look<wire::WatchLaunch>(),
    Look<wire::GetLaunch>(),
    Look<wire::ListLaunches>(),
    Look<wire::WaitMarker>(),
    Look<wire::WatchActor>(own),
    Look<wire::GetNamedActor>(),
    Look<wire::ListActors>(),
    Look<wire::GetGroup>(),
    Look<wire::ListGroups>(),
    Look<wire::GetStatus>(),
    Look<wire::ListEvents>(),
    Look<wire::ListTasks>(),

    Act<wire::SubmitLaunch>(),
    Act<wire::CancelLaunch>(),
    Act<wire::GetResult>(),
    Act<wire::AcquireDriver>(),
    Act<wire::RenewDriver>(),
    Act<wire::Complete>(),
    Act<wire::CreateActor>(),
    Act<wire::KillActor>(),
    Act<wire::CreateGroup>(),
    Act<wire::RemoveGroup>(),
    Act<wire::KvPut>(),
    Act<wire::KvGet>(),
    Act<wire::KvDelete>(),
    Act<wire::KvList>(),
    Act<wire::CertifyProcess>(),
    Act<wire::TasksTold>(),

    Govern<wire::CreateToken>(),
    Govern<wire::ListTokens>(),
    Govern<wire::RevokeToken>(),
    Govern<wire::StopCluster>(),

    // What the head answers and orders.
    NotToTheHead<wire::Welcome>(),
    NotToTheHead<wire::Refused>(),
    NotToTheHead<wire::ErrorReply>(),
    NotToTheHead<wire::Ok>(),
    NotToTheHead<wire::NodeRegistered>(),
    NotToTheHead<wire::HeartbeatAck>(),
    NotToTheHead<wire::Reserve>(),
    NotToTheHead<wire::Release>(),
    NotToTheHead<wire::StartRanks>(),
    NotToTheHead<wire::PublishRoster>(),
    NotToTheHead<wire::RankDoneAck>(),
    NotToTheHead<wire::EndEpoch>(),
    NotToTheHead<wire::StartActor>(),
    NotToTheHead<wire::EndActor>(),
    NotToTheHead<wire::RelayDown>(),
    NotToTheHead<wire::EndNode>(),
    NotToTheHead<wire::ProbePeer>(),
    NotToTheHead<wire::LaunchAccepted>(),
    NotToTheHead<wire::LaunchUpdate>(),
    NotToTheHead<wire::LaunchList>(),
    NotToTheHead<wire::ResultValue>(),
    NotToTheHead<wire::DriverGranted>(),
    NotToTheHead<wire::MarkerReply>(),
    NotToTheHead<wire::ActorUpdate>(),
    NotToTheHead<wire::ActorList>(),
    NotToTheHead<wire::GroupUpdate>(),
    NotToTheHead<wire::GroupList>(),
    NotToTheHead<wire::KvValue>(),
    NotToTheHead<wire::KvKeys>(),
    NotToTheHead<wire::ClusterStatus>(),
    NotToTheHead<wire::TokenCreated>(),
    NotToTheHead<wire::TokenList>(),
    NotToTheHead<wire::TokenRevoked>(),
    NotToTheHead<wire::Revoked>(),
    NotToTheHead<wire::ProcessCertificate>(),
    NotToTheHead<wire::OutputOf>(),
    NotToTheHead<wire::EventList>(),
    NotToTheHead<wire::TellTasks>(),
    NotToTheHead<wire::AskRanks>(),
    NotToTheHead<wire::StopRanks>(),
    NotToTheHead<wire::PeersLost>(),
    NotToTheHead<wire::FormGroup>(),
    NotToTheHead<wire::ReplaceRanks>(),
    // What a worker is asked (worker/peer_server.cc), and what it says to its processes and they to
    // it.
    NotToTheHead<wire::ReadLog>(),
    NotToTheHead<wire::LogChunk>(),
    NotToTheHead<wire::ReadLogs>(),
    NotToTheHead<wire::LogParts>(),
    NotToTheHead<wire::ReadStacks>(),
    NotToTheHead<wire::StackDump>(),
    NotToTheHead<wire::PutBlob>(),
    NotToTheHead<wire::GetBlob>(),
    NotToTheHead<wire::BlobChunk>(),
    NotToTheHead<wire::ForkRequest>(),
    NotToTheHead<wire::ForkReply>(),
    NotToTheHead<wire::ChildExit>(),
    NotToTheHead<wire::ZygoteReady>(),
    NotToTheHead<wire::RankBegin>(),
    NotToTheHead<wire::RankPrepared>(),
    NotToTheHead<wire::RankRun>(),
    NotToTheHead<wire::RankResult>(),
    NotToTheHead<wire::ProcessEnd>(),
    NotToTheHead<wire::ActorBegin>(),
    NotToTheHead<wire::ActorReady>(),
    NotToTheHead<wire::StoreReady>(),
    NotToTheHead<wire::ActorLease>(),
    NotToTheHead<wire::ProcessStop>(),
    NotToTheHead<wire::CpuLent>(),
    NotToTheHead<wire::ProcessWhere>(),
    NotToTheHead<wire::AskBegun>(),
    NotToTheHead<wire::GroupLate>(),
    NotToTheHead<wire::ProcessAskBegun>(),
    NotToTheHead<wire::ProcessBegun>(),
    NotToTheHead<wire::PeersReturned>(),
    NotToTheHead<wire::GroupAwaits>(),
    NotToTheHead<wire::GroupJoin>(),
    NotToTheHead<wire::GroupFormed>(),
    NotToTheHead<wire::RankProgram>(),
};

}  // namespace role_rows

inline constexpr std::size_t kKinds = std::size(wire::kBodyNames);

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

constexpr May MayOf(Speaker speaker, std::size_t kind) {
  return kRolesByKind[kind].may[static_cast<std::size_t>(speaker)];
}

}  // namespace troupe::head
