@0xd1f0a3c2b4e59603;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# Head <-> worker.
using import "types.capnp".NodeId;
using import "types.capnp".LaunchId;
using import "types.capnp".ActorId;
using import "types.capnp".GroupId;
using import "types.capnp".ProcessId;
using import "types.capnp".TokenId;
using import "types.capnp".Resource;
using import "types.capnp".Label;
using import "types.capnp".EnvVar;
using import "types.capnp".Bundle;
using import "types.capnp".BundleGrant;
using import "types.capnp".Failure;
using import "types.capnp".FailureKind;
using import "types.capnp".LateRank;
using import "types.capnp".GroupWait;
using import "types.capnp".Outcome;
using import "types.capnp".BlobRef;
using import "types.capnp".RuntimeEnvironment;
using import "types.capnp".LaunchMode;
using import "types.capnp".ActorAddress;
using import "types.capnp".Measure;

struct Device { index @0 :UInt32; uuid @1 :Text; model @2 :Text; memoryMib @3 :UInt64; pciBusId @4 :Text; numaNode @5 :Int32 = -1; }
struct Holding { group @0 :GroupId; attempt @1 :UInt64; draining @2 :Bool; }
struct HeldRank { launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64; rank @3 :UInt32; }
struct HeldActor { actor @0 :ActorId; incarnation @1 :UInt64; }

# worker -> head, first after Welcome, on every (re)connect. Answer: NodeRegistered.
struct RegisterNode {
  node @0 :NodeId;
  name @1 :Text;
  host @2 :Text;
  bootId @3 :Text;
  listenHost @4 :Text;
  listenPort @5 :UInt16;
  unixPath @6 :Text;           # the worker's own socket, for processes of the same host and uid
  resources @7 :List(Resource);
  labels @8 :List(Label);
  devices @9 :List(Device);
  pythonVersion @10 :Text;
  pid @11 :Int32;
  incarnation @12 :UInt64;     # the last one this worker was given; 0 = none yet
  holdings @13 :List(Holding);
  ranks @14 :List(HeldRank);
  actors @15 :List(HeldActor);
  free @16 :List(Resource);    # what is neither held nor draining, and its version
  freeVersion @17 :UInt64;
}
struct NodeRegistered {
  node @0 :NodeId;
  incarnation @1 :UInt64;
  name @2 :Text;               # made unique by the head
  leaseMs @3 :UInt32;
  heartbeatMs @4 :UInt32;
  measuresMs @5 :UInt32;       # it is to send NodeMeasures so often; 0: never
}
# `preimports`: of what --preimport asked for, each for people: "lightning, transformers: ready, 4.2 s of imports".
struct Heartbeat { sequence @0 :UInt64; freeVersion @1 :UInt64; zygoteReady @2 :Bool; preimports @3 :List(Text); }
struct HeartbeatAck { sequence @0 :UInt64; }
# worker -> head, every measuresMs: what the node and its devices are doing. The newest replaces the one before.
struct NodeMeasures { measures @0 :List(Measure); }

# head -> worker: does this node, of which the head hears nothing, answer you? Answer within 2 s: PeerProbed.
struct ProbePeer { question @0 :UInt64; node @1 :NodeId; bootId @2 :Text; listenHost @3 :Text; listenPort @4 :UInt16; unixPath @5 :Text; }
struct PeerProbed { question @0 :UInt64; node @1 :NodeId; reached @2 :Bool; }
# worker -> head, once a second while its loop stands, by a session of its own: the process is there. `state`: what the thread
# of the loop does, a letter of proc_pid_stat(5).
struct WorkerHeldUp { state @0 :UInt8; }

# Placement groups: one-phase, attempt-fenced reservation (spec: placement-groups).
struct Reserve { group @0 :GroupId; attempt @1 :UInt64; bundles @2 :List(Bundle); parent @3 :GroupId; }
struct ReserveReply {
  group @0 :GroupId; attempt @1 :UInt64; granted @2 :Bool;
  grants @3 :List(BundleGrant);
  reason @4 :Text;
  free @5 :List(Resource); freeVersion @6 :UInt64;
}
# Idempotent, and always answered: Released once nothing of the attempt is left here, also if nothing was.
struct Release { group @0 :GroupId; attempt @1 :UInt64; }
struct Released { group @0 :GroupId; attempt @1 :UInt64; free @2 :List(Resource); freeVersion @3 :UInt64; }

struct RankPlace { rank @0 :UInt32; localRank @1 :UInt32; life @2 :UInt64; }   # `life`: as in NewRank
# head -> worker: fork these ranks now; they prepare and wait for the roster. Attachment: the payload,
# unless `payload` names a blob. Sent again after a reconnect: a worker that has this epoch and
# generation forks nothing, and answers RanksReady again once they are ready.
struct StartRanks {
  launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64;
  group @3 :GroupId; attempt @4 :UInt64;
  mode @5 :LaunchMode;
  name @6 :Text;
  ranks @7 :List(RankPlace);
  worldSize @8 :UInt32;
  nodeRank @9 :UInt32;
  nodeCount @10 :UInt32;
  hostsStore @11 :Bool;        # this node forks the rendezvous store, before any rank
  gpuIds @12 :List(UInt32);    # the launch's devices on this node, one mask for all its ranks
  environment @13 :RuntimeEnvironment;
  payload @14 :BlobRef;
  peerHosts @15 :List(Text);   # listen hosts of the other nodes: the interface that reaches them is chosen
  perRank @16 :List(Resource);
  exitGraceMs @17 :UInt32 = 60000;
  hangMs @18 :UInt32;          # as in LaunchSpec
  keepLogBytes @19 :UInt32;    # the head keeps so much of the end of each rank's stderr (KeepLog); 0: nothing
}
# worker -> head, when all its ranks have reported in.
struct RanksReady {
  launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64;
  storeHost @3 :Text; storePort @4 :UInt16;       # of the node that hosts the store
  rankActors @5 :List(ActorAddress);              # one per local rank, in order of local rank (driver mode)
  startedFrom @6 :Text;                           # as in LaunchInfo
  groupSecret @7 :Data;                           # of the node that hosts the store: by it the ranks of a group of the backend troupe know each other
}
# head -> worker, when every node is ready: ranks run. May come again after a reconnect: no effect then.
struct PublishRoster {
  launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64;
  storeHost @3 :Text; storePort @4 :UInt16;
  rankActors @5 :List(ActorAddress);              # all ranks, by rank; only to the driver's node
  nodes @6 :List(NodeId);
  groupSecret @7 :Data;
}
# worker -> head: a rank's result is whole; or it has exited without one, or after it was told to stop, and its channel
# is drained. Kept and repeated until acknowledged.
# Attachment: the pickled value, or the pickled exception.
struct RankDone {
  launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64; rank @3 :UInt32;
  outcome @4 :Outcome;
  failure @5 :Failure;
  sha256 @6 :Data;             # of the attachment, or of the value the worker keeps
  keptByWorker @7 :Bool;       # larger than what travels with the marker
  sizeBytes @8 :UInt64;
  order @9 :UInt64;            # in the head's log; a worker leaves it 0
  driversWord @10 :Bool;       # the driver said itself that it failed: no other attempt follows
  life @11 :UInt64;            # as in NewRank; 0: the rank's first process
}
# worker -> head, before RankDone of a launch with keepLogBytes, and with each repetition of it. Attachment: the end of the rank's stderr, which begins
# at `offset`.
struct KeepLog { launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; offset @3 :UInt64; }
struct RankDoneAck { launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; }
# head -> worker: this epoch is over (a marker, or a newer epoch): every rank process of it and of
# older ones ends with exitCode; what the driver created ends too. `graceMs`: code that still runs is told to stop first.
struct EndEpoch { launch @0 :LaunchId; epoch @1 :UInt64; outcome @2 :Outcome; exitCode @3 :Int32; reason @4 :Text; terminal @5 :Bool; graceMs @6 :UInt32; }
# head -> worker: what do you know of this epoch's ranks? Answer: RanksSeen, when all that their sockets and their ends
# had to tell at that moment has been told.
struct AskRanks { launch @0 :LaunchId; epoch @1 :UInt64; question @2 :UInt64; }
struct RanksSeen { launch @0 :LaunchId; epoch @1 :UInt64; question @2 :UInt64; }
# head -> worker: ranks of this epoch whose code still runs get `signal` and have `graceMs` to end. May come again, with
# less time.
struct StopRanks { launch @0 :LaunchId; epoch @1 :UInt64; signal @2 :Int32; graceMs @3 :UInt32; reason @4 :Text; exitCode @5 :Int32; outcome @6 :Outcome; where @7 :Bool; }
# worker -> head: where a rank's code was when it was told to stop, upon StopRanks with `where`: a text for people, as Python's tracebacks
# are. Once per rank; one whose interpreter does not answer sends none.
struct RankWhere { launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; text @3 :Text; }
# worker -> head: how a rank left after its result, where that was not well. It changes no outcome.
struct RankLeft { launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; warning @3 :Text; }
# head -> worker -> its ranks, of a launch that goes on without ranks that died (LaunchSpec.onRankDeath): the epoch of the ranks' group is
# `groupEpoch` now. Ranks end the connections of their former group and come to the next one (GroupJoin). Of `lost` a worker kills what still runs
# here; in the places of `replaced` others are started. `hostsStore`: it forks a rendezvous store unless it has one. May come again, after a reconnect.
struct PeersLost {
  launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; lost @3 :List(Failure); hostsStore @4 :Bool; limitMs @5 :UInt32;
  replaced @6 :List(Failure);
}
# worker -> head, with each that comes: its ranks that have come to this epoch of the group; the store's address, where the node hosts it.
struct GroupJoined { launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; ranks @3 :List(UInt32); storeHost @4 :Text; storePort @5 :UInt16; }
struct GroupPlace { rank @0 :UInt32; groupRank @1 :UInt32; }
# head -> worker: all have come; who is which rank of the group, of the ranks there. May come again, after a reconnect.
struct FormGroup { launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; places @3 :List(GroupPlace); worldSize @4 :UInt32; storeHost @5 :Text; storePort @6 :UInt16; }
# `life`: the epoch of the ranks' group in which the process was started. `group`, not nil: the reservation that it lives in, with these devices; else
# the launch's own.
struct NewRank { rank @0 :UInt32; life @1 :UInt64; localRank @2 :UInt32; group @3 :GroupId; attempt @4 :UInt64; gpuIds @5 :List(UInt32); }
# head -> worker: fork these ranks anew, in the place of processes that died; they come to the group's next epoch. Attachment: the payload, unless it
# is a blob, which the worker has. May come again, after a reconnect.
struct ReplaceRanks { launch @0 :LaunchId; epoch @1 :UInt64; ranks @2 :List(NewRank); }
# worker -> head, of a launch with hangMs: for so long has this rank waited in this operation of a group of torch's for those that have not come to it.
# `waiting`: who waits there; `op`: the operation's name, as far as it is known.
struct RanksLate {
  launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; rank @3 :UInt32;
  torchGroup @4 :Text; operation @5 :UInt64; op @6 :Text; waitedMs @7 :UInt32; late @8 :List(LateRank); waiting @9 :List(UInt32);
}
# head -> worker: how many operations of this group has that rank begun? Answer: RankBegun, within `limitMs`; `silent`: the process did not say it;
# `waits`: it waits in a collective itself. `key`, where it is not empty: the question is to a rank that has returned (PeersReturned), and counts what
# ProcessAskBegun says.
struct AskBegun {
  launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; question @3 :UInt64; torchGroup @4 :Text; limitMs @5 :UInt32; key @6 :Text;
}
struct RankBegun { launch @0 :LaunchId; epoch @1 :UInt64; rank @2 :UInt32; question @3 :UInt64; begun @4 :UInt64; silent @5 :Bool; where @6 :Text; waits @7 :Bool; }
# head -> worker -> its ranks that run: these ranks, by their numbers in the group of this epoch, have returned since the last such word. A rank that waits
# for one of them in its groups says so: GroupAwaits. All that have returned come again after a reconnect.
struct PeersReturned { launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; ranks @3 :List(UInt32); }
# worker -> head: as GroupAwaits, of this rank.
struct RankAwaits {
  launch @0 :LaunchId; epoch @1 :UInt64; groupEpoch @2 :UInt64; rank @3 :UInt32; torchGroup @4 :Text; key @5 :Text; kind @6 :GroupWait;
  operation @7 :UInt64; op @8 :Text; awaited @9 :List(UInt32); where @10 :Text;
}
struct EpochEnded { launch @0 :LaunchId; epoch @1 :UInt64; }   # worker -> head: nothing of it is left here

# Attachment: pickled class and arguments. May come again after a reconnect: ActorStarted or ActorEnded
# is then sent again, nothing is forked twice.
struct StartActor {
  actor @0 :ActorId; incarnation @1 :UInt64;
  name @2 :Text; className @3 :Text;
  group @4 :GroupId; attempt @5 :UInt64; bundle @6 :Int32 = -1;   # the reservation it lives in
  gpuIds @7 :List(UInt32);
  environment @8 :RuntimeEnvironment;
  launch @9 :LaunchId; epoch @10 :UInt64;         # scope; nil: the cluster's
  maxConcurrency @11 :UInt32;
  namespace @12 :Text;
  payload @13 :BlobRef;
  recreatable @14 :Bool;       # named, detached or with max_restarts: ended after 60 s without a head
  lends @15 :Bool;             # it runs tasks, and the reservation is its alone: CPUs that a task that waits does not need are the node's to give
}
# `awaits`: its process is there, and waits for what its maker, on another host, is to bring to it before it is constructed.
struct ActorStarted { actor @0 :ActorId; incarnation @1 :UInt64; address @2 :ActorAddress; retired3 @3 :Data; awaits @4 :Bool; }
struct ActorEnded { actor @0 :ActorId; incarnation @1 :UInt64; failure @2 :Failure; graceful @3 :Bool; }  # attachment: pickled exception of a constructor
# worker -> head: of the CPUs that a process for tasks holds so much (ten-thousandths) is the node's to give while its tasks wait. Said anew after
# each registration.
struct ActorLends { actor @0 :ActorId; incarnation @1 :UInt64; amount @2 :UInt64; free @3 :List(Resource); freeVersion @4 :UInt64; }
struct EndActor { actor @0 :ActorId; incarnation @1 :UInt64; graceful @2 :Bool; reason @3 :Text; kind @4 :FailureKind; }

# A process's request, carried by its worker. `body` is a whole encoded message in the attachment.
struct Relay { process @0 :ProcessId; launch @1 :LaunchId; epoch @2 :UInt64; rank @3 :Int32 = -1; actor @4 :ActorId; }
struct RelayDown { process @0 :ProcessId; }
struct ProcessGone { process @0 :ProcessId; }

# head -> worker, after NodeRegistered and when there are more; worker -> its processes that serve calls: every token whose
# certificates are worth nothing any more. Connections that were opened by them are ended.
struct Revoked { tokens @0 :List(TokenId); }

struct EndNode { reason @0 :Text; }               # head -> worker: leave
