// A turn of the reducer: the state, the time, and the effects collected so far.
//
// Lives for one HeadCore::Handle call; every reducer function takes it. Append changes the durable
// state at once and writes the event down; Send and the others only collect. What is sent in a turn
// leaves after every event appended up to then is durable (head_core.h). Happened tells rooms above
// what they follow up (facts.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "head/core/machine/facts.h"
#include "head/core/machine/listing.h"
#include "head/core/machine/options.h"
#include "head/core/machine/seams.h"
#include "head/core/machine/state.h"
#include "runtime/base/status.h"

namespace troupe::head {

/// A request and who made it. `scope` is the launch its process belongs to (nil: none).
struct Request {
  Route route;
  std::uint64_t id = 0;
  wire::Role role = wire::Role::kNone;
  OwnerId owner;
  OwnerId line;  // owner of objects it makes, for permission checks (roles.h)
  TokenId token;  // by which that client came; nil: none
  std::string user;  // user of objects it makes (users.h)
  LaunchId launch;
  std::uint64_t epoch = 0;
  std::int32_t rank = -1;
  ActorId actor;  // the actor, or the rank as one, that asks through its worker
};

class Turn {
 public:
  /// `follow_up` null: nothing happens in this turn, which only looks.
  Turn(State& s, const CoreOptions& o, Seams seams, Instant n, std::uint64_t wall,
       FollowUp follow_up = nullptr)
      : state(s),
        options(o),
        random(seams.random),
        mint(seams.mint),
        now(n),
        wall_us(wall),
        follow_up_(follow_up) {}

  State& state;
  const CoreOptions& options;
  Random& random;
  TokenMint& mint;
  const Instant now;
  const std::uint64_t wall_us;

  void Append(wire::EventBody body, std::string attachment = {});
  /// A push, or an answer when `reply_to` is set.
  void SendTo(const Route& route, wire::Body body, std::string attachment = {},
              std::uint64_t reply_to = 0);
  /// To the node's worker; nothing when it has no session (it learns at its next registration).
  void ToNode(const NodeId& node, wire::Body body, std::string attachment = {});
  /// Nothing when the request wants no answer.
  void Reply(const Request& request, wire::Body body, std::string attachment = {});
  void Refuse(const Request& request, ErrorCode code, std::string text);
  void Close(const SessionId& session, std::string reason);
  void ProbeNode(const Node& node);
  void Arm(Instant due, TimerKind kind, const Id128& id) { state.timers.Arm(due, kind, id); }
  void Stop() { stop_ = true; }
  /// Rooms above follow it up before this returns.
  void Happened(const Fact& fact);

  /// Only to look at it; null: unknown.
  const Node* SeeNode(const NodeId& id) const;
  /// Returns a node for change: placement's facts about it are looked up anew (ClusterOf).
  Node* FindNode(const NodeId& id);
  Group* FindGroup(const GroupId& id);
  Launch* FindLaunch(const LaunchId& id);
  Actor* FindActor(const ActorId& id);
  std::string NodeName(const NodeId& id) const;
  /// "node a is lost: not heard of for 5000 ms", of one that is.
  std::string LossOf(const NodeId& id);

  std::set<NodeId> touched_nodes;  // in this turn

  /// Begun by who answers about all that waits; nothing is changed after it.
  void BeginListing() { listing.emplace(state); }
  std::optional<Listing> listing;

  // Collected, taken by HeadCore.
  std::vector<wire::Event> events;
  std::vector<head::Send> sends;
  std::vector<head::Close> closes;
  std::vector<Probe> probes;
  std::vector<Look> looks;
  std::vector<head::Certify> certificates;
  std::vector<EndedRecord> archive;
  std::vector<Recall> recalls;
  std::vector<KeptLog> kept_logs;
  std::vector<KeptLogRead> kept_log_reads;
  std::uint64_t archived_until_us = 0;
  bool stop() const { return stop_; }

 private:
  const FollowUp follow_up_;
  bool stop_ = false;
};

}  // namespace troupe::head
