// The head's state. Durable members are a fold over the journal's events (apply.h) and are changed
// by nothing else; volatile ones are learnt anew after a restart.
//
// View: the cluster. Ordered containers only: the order of iteration reaches effects.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "head/core/machine/archive_records.h"
#include "head/core/machine/event_history.h"
#include "head/core/machine/holdings.h"
#include "head/core/machine/idle_gpus.h"
#include "head/core/machine/io.h"
#include "head/core/machine/job_terms.h"
#include "head/core/machine/peer_inquiry.h"
#include "head/core/machine/program_metrics.h"
#include "head/core/machine/recalls.h"
#include "head/core/machine/recent_writes.h"
#include "head/core/machine/timers.h"
#include "head/core/machine/users.h"
#include "head/core/machine/waits.h"
#include "placement/cluster_index.h"
#include "placement/resources.h"
#include "runtime/base/ids.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

using placement::Resources;
/// The owner whose end takes objects along: a client's subject, an actor's id, a process's id; nil:
/// none.
using OwnerId = ProcessId;
struct Node {
  // durable
  NodeId id;
  std::string name;
  std::uint64_t incarnation = 0;
  wire::RegisterNode info;  // without what it held
  Resources total;
  bool dead = false;
  bool draining = false;
  std::string why;  // reason it is dead, or draining
  bool ended = false;  // dead, and all that it ran with it
  Instant heard_at{};      // before it was lost, by the clock of ...
  std::string heard_boot;  // ... this boot of the head's host
  Holdings holdings;
  // volatile
  SessionId session;
  SessionId last_session;  // through which its processes watch
  bool reported = false;   // since this head started
  bool suspect = false;
  bool leaving = false;  // the worker ends its processes, and starts none
  bool local = false;    // on the head's host: no network lies between
  Instant last_heard{};
  PeerInquiry inquiry;  // questions to its peers, while it is silent
  // State of its process at that time, as seen on this host, or by its own report: a letter of
  // proc_pid_stat(5)
  char worker_state = 0;
  Instant held_up_at{};  // the last WorkerHeldUp since it was heard
  bool zygote_ready = false;
  std::vector<std::string> preimports;  // as in Heartbeat
  std::uint64_t free_version = 0;
  Resources missing;  // resources the node lacks beyond this account of it
  bool settled = false;  // the reports at registration are complete
  std::shared_ptr<const wire::NodeMeasures> measures;  // the latest; null: none has come
  std::shared_ptr<const wire::NodeMeasures> measures_before;
  Instant measured{}, measured_before{};
  IdleGpus idle_gpus;
};

/// In the queue: the highest priority first, of equals the earliest.
using QueueKey = std::tuple<std::int64_t, std::uint64_t, GroupId>;  // less the priority, order, id
/// As a QueueKey, by user: less the priority, the user, order.
using UserQueueKey = std::tuple<std::int64_t, std::string, std::uint64_t>;
struct Group {
  // durable
  wire::GroupSubmitted spec;
  std::uint64_t order = 0;  // place among all that were submitted
  wire::GroupState state = wire::GroupState::kPending;
  std::uint64_t attempt = 0;
  bool attempting = false;
  std::vector<wire::BundlePlace> places;
  std::string reason;
  std::uint64_t waits_since_us = 0;  // wall clock: submitted then, or lost its places
  // volatile
  std::set<NodeId> answered;
  Instant retry_at{};
  unsigned refusals = 0;
  std::set<Route> watchers;
  Instant waits_since{};           // in the queue; zero: no pass has seen it there
  std::uint64_t failed_in = 0;     // QueueMemory::round in which there was no room for it
  std::uint64_t aheadless_in = 0;  // and none even were its nodes idle
  std::optional<CapAmounts> needs;  // need of its user's quota, once looked at

  bool live() const {
    return state != wire::GroupState::kRemoved && state != wire::GroupState::kInfeasible;
  }
  QueueKey key() const { return {-std::int64_t{spec.priority}, order, spec.group}; }
  bool waiting() const { return live() && !attempting && state != wire::GroupState::kCreated; }
};

struct Rank {
  NodeId node;
  std::uint32_t local_rank = 0;
  wire::RankDone done;  // outcome kNone until it finished; as to the rest see Replaced
  std::string value;
  bool absorbed = false;  // died, and the ranks' group has been formed without it since
  std::uint64_t life = 0;     // the group's epoch that its process was started in; 0: the first
  std::uint32_t deaths = 0;   // so many processes died in whose place others came
  std::uint32_t unborn = 0;   // the latest of them, that died before they were in a group
  GroupId group;              // the reservation that its process lives in; nil: the launch's own
  std::uint64_t attempt = 0;  // number of that
  // volatile
  ProcessId process;  // process that has asked for something as this rank; nil: none yet
  bool missing = false;  // the re-joined node did not report it
  wire::Outcome late = wire::Outcome::kNone;  // how it ended after the marker
  std::int32_t late_exit_code = 0;
  std::string warning;  // how it left after its result, where that was not well
  std::string where;  // place of its code when it was told to stop, by its own report
};

/// How the current epoch comes to its end (ending.h); volatile: a restarted head begins anew.
struct Ending {
  enum class Step : std::uint8_t { kNo, kAsking, kStopping };
  Step step = Step::kNo;
  std::uint64_t question = 0;
  std::set<NodeId> awaited;  // have not said yet what they know
  bool closed = false;       // `verdict` stands, whatever else is heard
  wire::Failure verdict;
  bool drivers_word = false;
  wire::StopRanks order;           // while stopping
  Instant due{};                   // then the marker is written, whatever has not ended
  std::set<std::uint32_t> silent;  // ranks that have not said yet where they were
  Instant silent_until{};  // end of the wait for their answers
  std::vector<Waiter> completes;   // drivers that have said that they failed
  RequestId complete;              // the last of their requests
};

/// The group of a launch's ranks, of which some may die (gang/regroup.h).
struct Regroup {
  wire::GroupReformed formed;  // durable: the latest; epoch 0: the gang as it began
  // volatile
  std::uint64_t epoch = 0;         // the one that nodes were told of; 0: none
  std::set<std::uint32_t> joined;  // ranks that have come to it
  std::uint32_t missing = 0;  // running ranks that have not come
  NodeId store_node;               // has, or makes, the store that they meet at
  std::string store_host;  // host of the store, once the node has reported it
  std::uint16_t store_port = 0;
  Instant due{};  // deadline: a rank that has not come then counts as dead
};

/// Questions to ranks that others wait for (gang/hang.h); volatile.
struct HangInquiry {
  std::uint64_t question = 0;                                     // 0: none is under way
  wire::RanksLate word;                                           // a waiting rank's
  std::map<std::uint32_t, std::optional<wire::RankBegun>> asked;  // answers of the ranks
  Instant due{};  // whoever's worker has not answered then has no word
};

/// Ranks that returned, of which others are told, and what those are asked that others wait for
/// (gang/returned.h); volatile.
struct ReturnedInquiry {
  std::set<std::uint32_t> untold;                                 // returned since the last word
  std::uint64_t question = 0;                                     // 0: none is under way
  wire::RankAwaits word;                                          // a waiting rank's
  std::set<std::uint32_t> waiting;                                // in that operation
  std::map<std::uint32_t, std::optional<wire::RankBegun>> asked;  // answers of the ranks
  Instant gathered{};  // end of the time for others that wait there to report
  Instant due{};       // whoever's worker has not answered then has no word
};

struct Launch {
  // durable
  LaunchId id;
  wire::LaunchSpec spec;
  JobTerms job;  // terms of the spec
  std::string payload;
  RequestId request;
  OwnerId owner;
  OwnerId line;  // client at the root of the creation chain; permission checks use it (roles.h)
  TokenId token;  // by which that client came; nil: none
  std::string user;     // users.h
  bool nested = false;  // a job has submitted it, and it ends with that
  GroupId group;
  std::uint64_t submitted_us = 0;
  std::uint64_t order = 0;
  wire::LaunchState phase = wire::LaunchState::kQueued;
  std::uint64_t epoch = 0;
  std::uint64_t attempt = 0;  // the group's, for this epoch
  std::vector<Rank> ranks;
  std::vector<NodeId> nodes;  // by node rank
  wire::RosterPublished roster;
  Regroup regroup;
  RequestId driver;               // nonce of the current epoch's driver; nil: not acquired
  bool cancel_requested = false;  // softly: the driver is asked
  std::string cancel_reason;
  std::optional<wire::CancelRequested> stop_asked;  // hard: CANCELLED is what its marker will say
  wire::Failure last_failure;
  std::uint32_t preemptions = 0;  // epochs that ended so
  std::optional<wire::Marker> marker;
  // when it was written, by the time that heads have run (lived_time.h)
  std::uint64_t marker_lived_us = 0;
  std::string value;  // the driver's
  // volatile
  std::map<NodeId, wire::RanksReady> ready;
  Route driver_route;
  bool driver_renews = false;
  Instant driver_due{}, timeout_due{};
  std::set<Route> watchers;
  Instant started{};
  Ending ending;
  HangInquiry hang;
  ReturnedInquiry returned;
  std::uint32_t nodes_there = 0;  // how many of a run's, when last counted

  bool open() const { return !marker.has_value(); }
  bool on_nodes() const {
    return open() &&
           (phase == wire::LaunchState::kStarting || phase == wire::LaunchState::kRunning);
  }
};
/// Outcomes of launches that are remembered when all else of them is forgotten: of the latest so
/// many.
inline constexpr std::size_t kTombstonesMax = 100'000;
struct Tombstone {
  wire::Outcome outcome = wire::Outcome::kNone;
  std::int32_t exit_code = 0;
};

/// The process of the life before the one that an actor waits for, or of its last one.
struct FormerLife {
  // durable
  NodeId node;  // nil: there was none
  std::uint64_t incarnation = 0;
  bool ended = true;  // known when that life was over
  // volatile
  bool gone = false;  // learnt since
};

struct Actor {
  // durable
  wire::ActorSpec spec;
  std::string payload;
  OwnerId owner;
  OwnerId line;  // client at the root of the creation chain; permission checks use it (roles.h)
  TokenId token;  // by which that client came; nil: none
  std::string user;
  OwnerId root;  // program that shows its output (output_routes.h); nil: none
  LaunchId launch;
  std::uint64_t epoch = 0;
  GroupId own_group;  // the reservation made for it alone
  wire::ActorState state = wire::ActorState::kPending;
  std::uint64_t incarnation = 0;
  wire::ActorPlaced place;
  wire::ActorAddress address;
  wire::Failure failure;
  std::string exception;  // pickled, of a constructor
  std::uint32_t restarts = 0;
  bool doomed = false;
  bool uncounted = false;  // somebody may have a handle that is not counted
  bool unwanted = false;   // nobody has a handle
  FormerLife former;
  // volatile
  std::set<Route> watchers;
  std::uint64_t lends = 0;  // how many of its CPUs, while its tasks wait
  bool missing = false;  // the re-joined node did not report it
  // Address where the process of that incarnation waits for its maker's refs
  wire::ActorAddress awaits_at;

  bool live() const { return state != wire::ActorState::kDead; }
  /// Returns true if an actor may still run, but its end is decided: its name is free (AN-1), and
  /// it is not started again.
  bool ending() const { return doomed || unwanted; }
};
/// (scope, namespace, name); scope nil: the cluster's. Of actors that live and are not ending.
using ActorName = std::tuple<LaunchId, std::string, std::string>;
inline ActorName ActorNameOf(const Actor& actor) {
  return {actor.launch, actor.spec.namespace_, actor.spec.name};
}

struct Value {
  std::uint64_t version = 0;
  std::string bytes;
  OwnerId line;  // owner: the first writer
};
using ValueKey = std::pair<std::string, std::string>;  // scope, key
inline std::size_t BytesOf(const ValueKey& key, const std::string& bytes) {
  return key.first.size() + key.second.size() + bytes.size();
}

struct Session {
  wire::Role role = wire::Role::kNone;
  Id128 subject;
  std::string host;
  bool local = false;
  bool left = false;  // after Goodbye
  TokenId token;      // by which it, or the certificate it showed, came; nil: none
  std::string user;   // a client's or an observer's
  NodeId node;        // a registered worker's
};
struct Owner {
  SessionId session;  // nil: away
  Instant expires{};  // while away
};

/// Results of a pass over the queue for the next one (schedule.cc).
struct QueueMemory {
  std::uint64_t round = 1;   // within one, who found no room finds none
  std::uint64_t growth = 0;  // the cluster index's, when the last pass began
  GroupId keeper;  // first waiting group, which keeps a place
  placement::Plan kept;
  Instant kept_at{};
  std::set<QueueKey> open;  // State::waiting_groups but those that only another round has news for
  std::uint64_t gone_over = 0;        // the round in which a pass looked at all of them
  Instant keep_due = Instant::max();  // when one of the others may keep a place
};

/// A question for tasks that somebody has not answered yet (task_lists.h).
struct TaskListing {
  RequestId ask;
  Route asker;
  std::set<Route> waits_for;
};

/// A wait that has begun (room.h): by whose room it is (nil: the cluster's) and the resource.
struct RoomWanted {
  struct Who {
    OwnerId owner;  // owner that wants it for a lease
    bool others = false;  // more than that
    Instant until{};
  };
  std::map<std::pair<GroupId, std::string>, Who> by;
  bool news = false;  // some have not been reported
  Instant due{};      // when they may be
};

struct State {
  // durable
  std::uint64_t incarnation = 0;
  std::uint64_t orders = 0;
  std::map<NodeId, Node> nodes;
  std::map<std::string, NodeId> node_names;  // the living alone
  std::map<NodeId, std::string> node_keys;   // SHA-256 of the key of a node's newest certificate
  std::deque<NodeId> dead_nodes;             // in the order of their deaths
  std::map<GroupId, Group> groups;
  std::map<LaunchId, Launch> launches;
  std::map<RequestId, LaunchId> requests;
  std::map<LaunchId, Tombstone> tombstones;
  std::deque<LaunchId> tombstone_order;  // the oldest first; it goes when there are too many
  EndedLaunches ended;  // markers: those of `launches` that have one
  std::map<ActorId, Actor> actors;
  std::map<ActorName, ActorId> names;
  /// Actors that have lost their names, but for those that are known to have ended: as with
  /// FormerLife some of that is learnt anew after a restart.
  std::map<ActorName, std::set<ActorId>> former_names;
  std::vector<ActorId> dead_actors;  // in the order of their deaths
  /// Placement groups and shares that ended, in that order: a late repeat of the request that made
  /// one must not make it again, with nobody left to remove it.
  std::deque<GroupId> ended_groups;
  std::set<ActorId> pending_actors;   // without a reservation of their own
  std::set<QueueKey> waiting_groups;  // for a place in the cluster
  std::set<UserQueueKey> waiting_by_user;  // entries of `waiting_groups`, by user
  std::set<QueueKey> waiting_inside;  // for one in another group
  std::set<LaunchId> waiting_runs;    // STARTING, of mode command
  std::set<LaunchId> waiting_after;   // open, to start after others (jobs/jobs.h)
  std::set<TokenId> job_tokens;       // by which the processes of open jobs come
  std::map<ValueKey, Value> values;
  std::size_t values_bytes = 0;  // size of all `values`, with their keys
  RecentWrites recent_writes;    // the requests that wrote to `values`
  std::map<TokenId, wire::TokenWritten> tokens;
  Users users;  // durable in part
  // Time that heads of this state have run, when that was last noted (TimePassed)
  std::uint64_t lived_us = 0;
  std::uint64_t seen_wall_us = 0;  // the host's clock then; 0: never noted
  // volatile
  std::map<SessionId, Session> sessions;
  std::map<OwnerId, Owner> owners;
  /// Ranks of open launches by Rank::process.
  std::map<ProcessId, std::pair<LaunchId, std::uint32_t>> rank_processes;
  EventHistory history;  // for who asks what has happened
  /// Ways to programs that show output, while they are reached (output_routes.h).
  std::map<OwnerId, Route> output_routes;
  // Clients that have reported tasks, while they are reached (task_lists.h)
  std::set<Route> task_owners;
  std::deque<TaskListing> task_listings;  // under way, the oldest first
  Timers timers;
  Waits waits;      // for markers
  Recalls recalls;  // requests that wait for the archive
  Instant started{};
  Instant lived_at{};     // when lived_us was noted
  bool replaying = true;  // until the head starts
  bool read_only = false;
  bool cut_off = false;         // nodes are silent, and nobody is heard over the network
  Instant heard_again{};        // when that ended
  std::uint64_t questions = 0;  // rounds of peers asked, since this head started
  bool failing_jobs = false;    // the launches after one that failed are gone over
  bool dirty = false;           // something changed that may let a waiting request be placed
  /// The living nodes, but for those in `changed_nodes`: ask ClusterOf.
  placement::ClusterIndex cluster;
  std::set<NodeId> changed_nodes;
  QueueMemory queue;
  std::set<std::pair<OwnerId, ActorId>> leased_actors;  // living ones, by maker
  RoomWanted room_wanted;
  ProgramMetrics program_metrics;

  /// Lists an actor that has lost its name in `former_names`, or takes it out.
  void ListFormerName(const Actor& actor);
  void DropFormerName(const Actor& actor);
  /// Lists a group that waits from now on, in the cluster's queue or among those inside another
  /// group.
  void Enqueue(const Group& group);
  /// Takes a group that waits no longer from those lists.
  void Dequeue(const Group& group);
  /// Returns true if a request of the user at that priority waits that came before `order`.
  bool EarlierWaits(const std::string& user, std::int64_t less_priority, std::uint64_t order) const;
  std::vector<std::string> UsersWaitingAt(std::int64_t less_priority) const;
  /// Returns the user of a client or an observer that came by this token; nil: no token.
  std::string UserOfToken(const TokenId& token) const;
};

/// Reads the terms of a launch that is new in the state, and lists it among those that start after
/// others.
void NoteJob(State& state, Launch& launch);
/// Takes a launch that has ended from those lists.
void DropJob(State& state, const Launch& launch);

}  // namespace troupe::head
