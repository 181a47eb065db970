@0xd1f0a3c2b4e59607;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# The head's journal: what happened, one event a row. State is a fold over these events and nothing
# else; what is not here (sessions, last words of a node) a restarted head learns anew. Events stay
# readable for ever: append fields and kinds, never reuse a number. Bulk bytes (payloads, results,
# values) are the row's attachment, never a field.
using import "types.capnp".Id;
using import "types.capnp".NodeId;
using import "types.capnp".LaunchId;
using import "types.capnp".ActorId;
using import "types.capnp".GroupId;
using import "types.capnp".TokenId;
using import "types.capnp".RequestId;
using import "types.capnp".ProcessId;
using import "types.capnp".Role;
using import "types.capnp".Strategy;
using import "types.capnp".Bundle;
using import "types.capnp".Where;
using import "types.capnp".BundlePlace;
using import "types.capnp".Failure;
using import "types.capnp".Outcome;
using import "types.capnp".Resource;
using import "types.capnp".Cap;
using import "types.capnp".LaunchState;
using import "types.capnp".ActorState;
using import "types.capnp".GroupState;
using import "types.capnp".ActorAddress;
using import "node.capnp".RegisterNode;
using import "node.capnp".RankDone;
using import "client.capnp".LaunchSpec;
using import "client.capnp".ActorSpec;
using import "client.capnp".Marker;

struct HeadStarted { incarnation @0 :UInt64; wallUs @1 :UInt64; version @2 :Text; }

# So long have heads of this state run by their monotonic clocks (`livedUs`, what other events call so too), and then their host's clock said this.
struct TimePassed { livedUs @0 :UInt64; wallUs @1 :UInt64; }

struct NodeJoined { registration @0 :RegisterNode; name @1 :Text; incarnation @2 :UInt64; wallUs @3 :UInt64; }
# `ended`: all that it ran has ended with it. `heardNs`: the last sign of life of it, by the monotonic clock of boot `bootId` of the head's host.
struct NodeDied { node @0 :NodeId; incarnation @1 :UInt64; cause @2 :Text; ended @3 :Bool; heardNs @4 :UInt64; bootId @5 :Text; }
struct NodeKeyed { node @0 :NodeId; keyHash @1 :Data; }   # SHA-256 of the key of its newest certificate
struct NodeDrained { node @0 :NodeId; reason @1 :Text; }

# `owner` is whose end takes it along: a client's or a process's id; nil: nobody's (detached). `line` is whose it is for who
# may act on it (head/core/nodes/roles.h): the client at the beginning of the line of makers. `token` let that client in; nil: none.
# `user` is that token's owner; empty: the head's own user. `nested`: what a launch or job runs has submitted it.
struct GroupSubmitted {
  group @0 :GroupId; name @1 :Text; strategy @2 :Strategy; bundles @3 :List(Bundle);
  owner @4 :ProcessId; detached @5 :Bool; launch @6 :LaunchId; epoch @7 :UInt64; parent @8 :GroupId;
  actor @9 :ActorId; gang @10 :Bool; gpuType @11 :Text; node @12 :NodeId; nodeSoft @13 :Bool;
  count @14 :UInt32;           # of a gang: that many of bundles[0]
  shares @15 :Bool; shareRank @16 :Int32 = -1;   # of the launch's ranks: bundle i lies on its node i
  where @17 :Where;
  priority @18 :Int32;
  submittedUs @19 :UInt64;
  namespace @20 :Text;         # of its name
  line @21 :ProcessId; token @22 :TokenId;
  infeasibleWaits @23 :Bool;   # as in LaunchSpec
  ranksEach @24 :UInt32;       # of a gang: ranks that one of `count` is; 0: one
  user @26 :Text;
  replaces @25 :List(UInt32);  # bundle i is for a process in the place of this rank of `launch`, which died
}
struct GroupAttempted { group @0 :GroupId; attempt @1 :UInt64; places @2 :List(BundlePlace); }   # before Reserve is sent
struct GroupUnplaced { group @0 :GroupId; attempt @1 :UInt64; reason @2 :Text; wallUs @3 :UInt64; }   # refused, or a node lost
struct GroupPlaced { group @0 :GroupId; attempt @1 :UInt64; places @2 :List(BundlePlace); }      # CREATED
struct GroupEnded { group @0 :GroupId; reason @1 :Text; }

struct LaunchSubmitted { launch @0 :LaunchId; spec @1 :LaunchSpec; request @2 :RequestId; owner @3 :ProcessId; group @4 :GroupId; submittedUs @5 :UInt64; line @6 :ProcessId; token @7 :TokenId; user @8 :Text; nested @9 :Bool; }  # attachment: payload
struct RankPlacement { rank @0 :UInt32; node @1 :NodeId; localRank @2 :UInt32; }
struct EpochBegun { launch @0 :LaunchId; epoch @1 :UInt64; attempt @2 :UInt64; ranks @3 :List(RankPlacement); nodes @4 :List(NodeId); }
struct RosterPublished { launch @0 :LaunchId; epoch @1 :UInt64; storeHost @2 :Text; storePort @3 :UInt16; rankActors @4 :List(ActorAddress); readyMs @5 :UInt64; startedFrom @6 :Text; groupSecret @7 :Data; }
struct DriverAcquired { launch @0 :LaunchId; epoch @1 :UInt64; nonce @2 :RequestId; }
struct RankFinished { done @0 :RankDone; }                       # attachment: the value
# The ranks' group of this epoch: `members` by rank of the group. What died before is no part of it.
struct GroupReformed { launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; members @3 :List(UInt32); storeHost @4 :Text; storePort @5 :UInt16; }
struct RankReplaced { launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; rank @3 :UInt32;      # another process takes its place
  node @4 :NodeId; localRank @5 :UInt32; group @6 :GroupId; attempt @7 :UInt64; }    # nil: where it was
struct EpochFailed { launch @0 :LaunchId; epoch @1 :UInt64; failure @2 :Failure; preempted @3 :Bool; }
# Hard: CANCELLED is what its marker will say. `timedOut`: the launch's own time was over.
struct CancelRequested { launch @0 :LaunchId; reason @1 :Text; hard @2 :Bool; graceMs @3 :UInt32; signal @4 :Int32; timedOut @5 :Bool; }
struct MarkerWritten { marker @0 :Marker; manifestSha256 @1 :Data; livedUs @2 :UInt64; }   # write-once. Attachment: the driver's value
struct LaunchRetired { launch @0 :LaunchId; outcome @1 :Outcome; exitCode @2 :Int32; }            # leaves a tombstone
struct LaunchDisowned { launch @0 :LaunchId; owner @1 :ProcessId; token @2 :TokenId; }    # another client leases it from now on

struct ActorCreated { spec @0 :ActorSpec; owner @1 :ProcessId; launch @2 :LaunchId; epoch @3 :UInt64; group @4 :GroupId; root @5 :ProcessId; line @6 :ProcessId; token @7 :TokenId; user @8 :Text; }   # attachment: payload
struct ActorPlaced { actor @0 :ActorId; incarnation @1 :UInt64; node @2 :NodeId; group @3 :GroupId; attempt @4 :UInt64; bundle @5 :Int32 = -1; gpuIds @6 :List(UInt32); }
struct ActorLive { actor @0 :ActorId; incarnation @1 :UInt64; address @2 :ActorAddress; retired3 @3 :Data; }
struct ActorDoomed { actor @0 :ActorId; reason @1 :Text; }       # kill asked for: no restart follows
# `ended`: the process of this life, or of the one before where this one never began, has ended; else it may still run. Attachment: pickled exception.
struct ActorDied { actor @0 :ActorId; incarnation @1 :UInt64; failure @2 :Failure; restart @3 :Bool; ended @4 :Bool; }
struct ActorForgotten { actor @0 :ActorId; }
# Of its handles: one is where it is not counted; or, unless that came first, nobody has one any more.
struct ActorHandles { actor @0 :ActorId; uncounted @1 :Bool; unwanted @2 :Bool; }

struct ValueWritten { scope @0 :Text; key @1 :Text; version @2 :UInt64; request @3 :RequestId; line @4 :ProcessId; }   # attachment: the value
struct ValueErased { scope @0 :Text; key @1 :Text; request @2 :RequestId; }

struct TokenWritten {
  id @0 :TokenId; role @1 :Role; key @2 :Data; createdUs @3 :UInt64; expiresUs @4 :UInt64;
  revoked @5 :Bool; singleUse @6 :Bool; usedUs @7 :UInt64; uses @8 :UInt32; note @9 :Text;
  createdLivedUs @10 :UInt64; user @11 :Text;
}

# All caps of a user; none: there is no quota any more.
struct QuotaWritten { user @0 :Text; caps @1 :List(Cap); }
# What a user has held in that hour of `livedUs` until now: of each resource, for how many seconds all that the cluster has, or longer a part of it. It
# takes the place of what was noted of the same hour earlier.
struct UsageNoted { user @0 :Text; hour @1 :UInt64; held @2 :List(Resource); }

# ---- snapshots: events that make a state at once, in place of all that led to it ----
struct SnapshotBegun { incarnation @0 :UInt64; orders @1 :UInt64; livedUs @2 :UInt64; wallUs @3 :UInt64; }
struct HoldingKept { group @0 :GroupId; attempt @1 :UInt64; parent @2 :GroupId; held @3 :Bool; amount @4 :List(Resource); }
struct NodeKept {
  registration @0 :RegisterNode; name @1 :Text; incarnation @2 :UInt64; dead @3 :Bool; draining @4 :Bool;
  why @5 :Text; holdings @6 :List(HoldingKept); ended @7 :Bool; heardNs @8 :UInt64; bootId @9 :Text;   # as in NodeDied
}
struct GroupKept {
  spec @0 :GroupSubmitted; order @1 :UInt64; state @2 :GroupState; attempt @3 :UInt64; attempting @4 :Bool;
  places @5 :List(BundlePlace); reason @6 :Text; waitsSinceUs @7 :UInt64;
}
struct RankKept { node @0 :NodeId; localRank @1 :UInt32; done @2 :RankDone; absorbed @3 :Bool; life @4 :UInt64; deaths @5 :UInt32; group @6 :GroupId; attempt @7 :UInt64; unborn @8 :UInt32; }   # the latter as in Rank (head/core/machine/state.h)
struct LaunchKept {              # attachment: the payload while it is open, the driver's value after
  submitted @0 :LaunchSubmitted; order @1 :UInt64; phase @2 :LaunchState; epoch @3 :UInt64; attempt @4 :UInt64;
  ranks @5 :List(RankKept); nodes @6 :List(NodeId); roster @7 :RosterPublished; driver @8 :RequestId;
  cancelRequested @9 :Bool; cancelReason @10 :Text; lastFailure @11 :Failure; ended @12 :Bool; marker @13 :Marker;
  preemptions @14 :UInt32;
  cancel @15 :CancelRequested;
  markerLivedUs @16 :UInt64;
  reformed @17 :GroupReformed;
}
struct RankValueKept { launch @0 :LaunchId; rank @1 :UInt32; }   # attachment: the value
struct ActorKept {               # attachment: the payload while it lives, the pickled exception after
  created @0 :ActorCreated; state @1 :ActorState; incarnation @2 :UInt64; place @3 :ActorPlaced;
  address @4 :ActorAddress; retired5 @5 :Data; failure @6 :Failure; restarts @7 :UInt32; doomed @8 :Bool;
  uncounted @9 :Bool; unwanted @10 :Bool; formerEnded @11 :Bool;   # as ActorDied.ended, of the life at `place`, where the actor has none now
}
struct RecentWritesKept { requests @0 :List(RequestId); }
struct TombstonesKept { launches @0 :List(LaunchRetired); }      # in the order in which they were retired

struct Event {
  union {
    headStarted @0 :HeadStarted;
    nodeJoined @1 :NodeJoined;
    nodeDied @2 :NodeDied;
    nodeDrained @3 :NodeDrained;
    groupSubmitted @4 :GroupSubmitted;
    groupAttempted @5 :GroupAttempted;
    groupUnplaced @6 :GroupUnplaced;
    groupPlaced @7 :GroupPlaced;
    groupEnded @8 :GroupEnded;
    launchSubmitted @9 :LaunchSubmitted;
    epochBegun @10 :EpochBegun;
    rosterPublished @11 :RosterPublished;
    driverAcquired @12 :DriverAcquired;
    rankFinished @13 :RankFinished;
    epochFailed @14 :EpochFailed;
    cancelRequested @15 :CancelRequested;
    markerWritten @16 :MarkerWritten;
    launchRetired @17 :LaunchRetired;
    launchDisowned @18 :LaunchDisowned;
    actorCreated @19 :ActorCreated;
    actorPlaced @20 :ActorPlaced;
    actorLive @21 :ActorLive;
    actorDoomed @22 :ActorDoomed;
    actorDied @23 :ActorDied;
    actorForgotten @24 :ActorForgotten;
    valueWritten @25 :ValueWritten;
    valueErased @26 :ValueErased;
    tokenWritten @27 :TokenWritten;
    nodeKeyed @28 :NodeKeyed;
    snapshotBegun @29 :SnapshotBegun;
    nodeKept @30 :NodeKept;
    groupKept @31 :GroupKept;
    launchKept @32 :LaunchKept;
    rankValueKept @33 :RankValueKept;
    actorKept @34 :ActorKept;
    recentWritesKept @35 :RecentWritesKept;
    actorHandles @36 :ActorHandles;
    timePassed @37 :TimePassed;
    groupReformed @38 :GroupReformed;
    rankReplaced @39 :RankReplaced;
    quotaWritten @40 :QuotaWritten;
    usageNoted @41 :UsageNoted;
    tombstonesKept @42 :TombstonesKept;
  }
}
