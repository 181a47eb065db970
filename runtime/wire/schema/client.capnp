@0xd1f0a3c2b4e59604;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# Driver, CLI and (by relay) actor processes <-> head.
using import "types.capnp".ClusterId;
using import "types.capnp".NodeId;
using import "types.capnp".LaunchId;
using import "types.capnp".ActorId;
using import "types.capnp".GroupId;
using import "types.capnp".TokenId;
using import "types.capnp".RequestId;
using import "types.capnp".Role;
using import "types.capnp".Cap;
using import "types.capnp".CapKind;
using import "types.capnp".Resource;
using import "types.capnp".Label;
using import "types.capnp".Bundle;
using import "types.capnp".Where;
using import "types.capnp".BundlePlace;
using import "types.capnp".Failure;
using import "types.capnp".FailureKind;
using import "types.capnp".Outcome;
using import "types.capnp".Strategy;
using import "types.capnp".LaunchMode;
using import "types.capnp".RankDeath;
using import "types.capnp".LaunchState;
using import "types.capnp".ActorState;
using import "types.capnp".GroupState;
using import "types.capnp".NodeState;
using import "types.capnp".BlobRef;
using import "types.capnp".RuntimeEnvironment;
using import "types.capnp".ActorAddress;
using import "types.capnp".Measure;
using import "node.capnp".Device;

# ---- launches ----
struct LaunchSpec {
  name @0 :Text;
  mode @1 :LaunchMode;
  ranks @2 :UInt32;
  perRank @3 :List(Resource);
  gpuType @4 :Text;
  strategy @5 :Strategy;
  attemptsMax @6 :UInt32 = 1;
  timeoutMs @7 :UInt64;        # from submission to marker; 0 = none
  environment @8 :RuntimeEnvironment;
  detached @9 :Bool;
  payload @10 :BlobRef;        # empty sha256: the payload is the attachment
  functionName @11 :Text;
  where @12 :Where;
  priority @13 :Int32;         # in the queue: the highest first
  stopGraceMs @14 :UInt32 = 10000;   # from the word to stop to SIGKILL: Ctrl-C, cancel, timeout, drain
  exitGraceMs @15 :UInt32 = 60000;   # from a rank's result to the end of its process
  infeasibleWaits @16 :Bool;   # what no node can hold waits for one that joins, instead of being refused
  ranksPerNode @17 :UInt32;    # that many on each of as many nodes; 0: as they fit
  onRankDeath @18 :RankDeath;
  ranksMin @19 :UInt32;        # so many ranks have not died, or the launch fails; 0: one
  reformMs @20 :UInt32 = 300000;     # from a death until every rank has come to the re-form; who has not is a death too
  hangMs @21 :UInt32;                # a rank that others have waited for in a collective for so long is ended, as a death; 0: none is
  nodes @22 :UInt32;           # over exactly that many nodes, as evenly as possible, the first ones with one rank more; 0: see ranksPerNode
}
# Answer: LaunchAccepted, or ErrorReply (infeasible: reason per node). The submitting session then
# receives LaunchUpdate pushes until TERMINAL.
struct SubmitLaunch { spec @0 :LaunchSpec; request @1 :RequestId; }
struct LaunchAccepted { launch @0 :LaunchId; queuePlace @1 :UInt32; waitingFor @2 :Text; }
# `cause`: of an end that was not well, or early; `warning`: how it left after its result, where that was not well.
struct RankInfo { rank @0 :UInt32; node @1 :NodeId; nodeName @2 :Text; host @3 :Text; localRank @4 :UInt32; outcome @5 :Outcome; exitCode @6 :Int32; cause @7 :Text; warning @8 :Text; kind @9 :FailureKind; }
struct LaunchInfo {
  launch @0 :LaunchId; name @1 :Text; mode @2 :LaunchMode; ranks @3 :UInt32;
  state @4 :LaunchState; epoch @5 :UInt64; attemptsMax @6 :UInt32;
  outcome @7 :Outcome; exitCode @8 :Int32; cause @9 :Text;
  failure @10 :Failure;
  submittedUs @11 :UInt64; readyMs @12 :UInt64; durationMs @13 :UInt64;
  waitingFor @14 :Text; queuePlace @15 :UInt32;
  rankInfos @16 :List(RankInfo);
  nodes @17 :List(NodeId);
  travelled @18 :List(Text);
  resultBytes @19 :List(UInt64);
  headIncarnation @20 :UInt64;
  perRank @21 :List(Resource);
  watchers @22 :UInt32;        # sessions that are told of it
  priority @23 :Int32;
  preemptions @24 :UInt32;     # epochs that ended for a higher priority: not counted as attempts
  notTaken @25 :List(Text);    # as in RuntimeEnvironment
  startedFrom @26 :Text;       # what the ranks were started from, for people; empty: forked from their node's own zygote
  readyRanks @27 :UInt32;      # while it is STARTING: of the nodes that have said so
  groupEpoch @28 :UInt64;      # of its ranks' group: 1, and one more for each rank that died
  onRankDeath @29 :RankDeath;
  user @30 :Text;              # whose it is: the owner of the token that its submitter came by
}
struct LaunchUpdate { info @0 :LaunchInfo; }
struct WatchLaunch { launch @0 :LaunchId; }        # answer: LaunchUpdate now, pushes follow
struct GetLaunch { launch @0 :LaunchId; }          # answer: LaunchUpdate
# The latest `limit` (0: as many as an answer has room for) of those submitted from `sinceUs` on and, where `before` is given, before that
# launch, submitted at `beforeUs`. Answer: the oldest first; `more`: there are older ones. With `request` only the launch of that submission, with
# `prefix` only launches whose id, or whose job's id, begins so (`before` is then left out of account), with `openOnly` only those that are not over,
# with `inMemory` only those that the head has not moved to its archive.
struct ListLaunches {
  none @0 :Bool; limit @1 :UInt32; sinceUs @2 :UInt64; beforeUs @3 :UInt64; before @4 :LaunchId;
  request @5 :RequestId; prefix @6 :Text; openOnly @7 :Bool; inMemory @8 :Bool;
}
struct LaunchList { launches @0 :List(LaunchInfo); more @1 :Bool; }
struct GetResult { launch @0 :LaunchId; rank @1 :UInt32; }
struct ResultValue { launch @0 :LaunchId; rank @1 :UInt32; outcome @2 :Outcome; sha256 @3 :Data; keptBy @4 :NodeId; sizeBytes @5 :UInt64; }   # attachment: the pickle, unless keptBy
# Hard: its ranks are told to stop by `signal` (0: SIGTERM) and have `graceMs` for it (negative: what the launch was
# submitted with); said again, only less time. Answer: LaunchUpdate, once that is decided; the marker follows.
struct CancelLaunch { launch @0 :LaunchId; hard @1 :Bool; reason @2 :Text; graceMs @3 :Int32 = -1; signal @4 :Int32; }

# ---- completion marker, driver side (relayed by the driver's worker) ----
struct AcquireDriver { launch @0 :LaunchId; epoch @1 :UInt64; nonce @2 :RequestId; }
struct DriverGranted { epoch @0 :UInt64; ttlMs @1 :UInt32; info @2 :LaunchInfo; }
struct RenewDriver { launch @0 :LaunchId; epoch @1 :UInt64; }
# Attachment: the pickled value or exception. Answer: MarkerReply.
struct Complete { launch @0 :LaunchId; epoch @1 :UInt64; request @2 :RequestId; outcome @3 :Outcome; exitCode @4 :Int32; failure @5 :Failure; manifestSha256 @6 :Data; }
struct Marker {
  launch @0 :LaunchId; epoch @1 :UInt64; outcome @2 :Outcome; exitCode @3 :Int32; cause @4 :Text;
  request @5 :RequestId; wallTimeUs @6 :UInt64; headIncarnation @7 :UInt64; durationMs @8 :UInt64; failure @9 :Failure;
}
struct MarkerReply { marker @0 :Marker; }
struct WaitMarker { launch @0 :LaunchId; timeoutMs @1 :UInt64; }   # answer: MarkerReply, ErrorReply(timeout, unknown, wrong cluster)

# ---- actors ----
struct ActorSpec {
  actor @0 :ActorId;           # minted by the caller
  name @1 :Text; namespace @2 :Text; className @3 :Text;
  resources @4 :List(Resource);        # to place it
  runResources @5 :List(Resource);     # held while it runs
  group @6 :GroupId; bundle @7 :Int32 = -1;
  node @8 :NodeId; nodeSoft @9 :Bool;
  detached @10 :Bool;
  maxConcurrency @11 :UInt32 = 1;
  maxRestarts @12 :Int32;
  environment @13 :RuntimeEnvironment;
  payload @14 :BlobRef;
  getIfExists @15 :Bool;
  strategy @16 :Strategy;
  where @17 :Where;
  priority @18 :Int32;
  leased @19 :Bool;            # its maker is told when others wait for its room (ActorInfo.roomWanted), and gives it back when it is idle
  methods @20 :Data;           # of one with a name: what its handles know of its class, for who looks it up
  shown @21 :Bool;             # its maker shows its output, and that of what it makes: it is told OutputOf
  infeasibleWaits @22 :Bool;   # as in LaunchSpec
}
struct CreateActor { spec @0 :ActorSpec; }         # attachment: pickled class and arguments. Answer: ActorUpdate (pending)
struct ActorInfo {
  actor @0 :ActorId; name @1 :Text; namespace @2 :Text; className @3 :Text; state @4 :ActorState;
  address @5 :ActorAddress; node @6 :NodeId; nodeName @7 :Text; failure @8 :Failure; launch @9 :LaunchId;
  waitingFor @10 :Text; restarts @11 :UInt32; resources @12 :List(Resource); methods @13 :Data;
  unwanted @14 :Bool;            # it ends and never starts again: nobody has a handle of it, or it was killed
  roomWanted @15 :Bool;          # a word of this moment: somebody else has begun to wait for what it holds
  user @16 :Text;                # as in LaunchInfo
}
# Pushed to who shows the output of an actor when it is placed (its output is with that node's worker: ReadLogs), when it is alive and
# its instance has a text of its own (`reprName`), and when it ends.
struct OutputOf {
  actor @0 :ActorId; node @1 :NodeId; nodeName @2 :Text; className @3 :Text; name @4 :Text; ended @5 :Bool; reprName @6 :Text; pid @7 :Int32;
}
struct ActorUpdate { info @0 :ActorInfo; }         # also pushed to who created or watched it. Attachment: pickled constructor exception
# Answer: ActorUpdate now, pushes follow. `uncounted`: a handle is where it is not counted, from now on the actor is wanted.
struct WatchActor { actor @0 :ActorId; uncounted @1 :Bool; }
struct GetNamedActor { name @0 :Text; namespace @1 :Text; }
# All that live and the latest `limit` dead ones (0: as many as the head has in memory); with `before`, only dead ones that died before
# that actor. Answer: `more`: there are dead ones that died earlier; `earliest`: who died first of those in the answer.
struct ListActors { none @0 :Bool; limit @1 :UInt32; before @2 :ActorId; }
struct ActorList { actors @0 :List(ActorInfo); more @1 :Bool; earliest @2 :ActorId; }
# `unwanted`, by who made it: nobody has a handle of it. Answer: ActorUpdate, which says whether it is so; who made it then
# asks it to end itself, after the calls that were made before.
struct KillActor { actor @0 :ActorId; graceful @1 :Bool; noRestart @2 :Bool = true; unwanted @3 :Bool; }

# ---- placement groups ----
# With `shares`, by the driver of a launch: instead of bundles, what the launch reserved for its ranks (or
# for `shareRank` alone), each where its rank is; held while current().run runs there.
struct CreateGroup {
  group @0 :GroupId; name @1 :Text; strategy @2 :Strategy; bundles @3 :List(Bundle); detached @4 :Bool;
  shares @5 :Bool; shareRank @6 :Int32 = -1;
  where @7 :Where;
  priority @8 :Int32;
  namespace @9 :Text;          # of its name
  infeasibleWaits @10 :Bool;   # as in LaunchSpec
}
struct GroupInfo {
  group @0 :GroupId; name @1 :Text; strategy @2 :Strategy; state @3 :GroupState; attempt @4 :UInt64;
  places @5 :List(BundlePlace); bundles @6 :List(Bundle); reason @7 :Text; launch @8 :LaunchId;
  shares @9 :Bool; shareRank @10 :Int32 = -1;
  priority @11 :Int32; queuePlace @12 :UInt32;   # 1: the first; 0: it does not wait there
  gang @13 :Bool; actor @14 :ActorId;            # a launch's ranks', or what one actor holds
  user @15 :Text;                                # as in LaunchInfo
}
# Answer to CreateGroup, GetGroup, RemoveGroup; pushed to the creator. All of it for GetGroup; else what changes: `state`,
# `attempt`, `reason`, `queuePlace`.
struct GroupUpdate { info @0 :GroupInfo; }
# `explain`: `reason` is all of why it waits, a line per group of nodes. With `launch` or `actor`: what that one reserved.
struct GetGroup { group @0 :GroupId; name @1 :Text; watch @2 :Bool; explain @3 :Bool; launch @4 :LaunchId; actor @5 :ActorId; namespace @6 :Text; }
struct RemoveGroup { group @0 :GroupId; }
struct ListGroups { none @0 :Bool; }
struct GroupList { groups @0 :List(GroupInfo); }

# ---- names and values ----
# `request` tells a repeat from a second write: the client mints it.
struct KvPut { scope @0 :Text; key @1 :Text; overwrite @2 :Bool = true; request @3 :RequestId; }   # attachment: value. Answer: Ok or ErrorReply(alreadyExists)
struct KvGet { scope @0 :Text; key @1 :Text; }                                    # answer: KvValue, attachment: value
struct KvValue { found @0 :Bool; version @1 :UInt64; }
struct KvDelete { scope @0 :Text; key @1 :Text; request @2 :RequestId; }
struct KvList { scope @0 :Text; prefix @1 :Text; }
struct KvKeys { keys @0 :List(Text); }

# ---- cluster ----
struct NodeInfo {
  node @0 :NodeId; name @1 :Text; host @2 :Text; state @3 :NodeState; incarnation @4 :UInt64;
  listenHost @5 :Text; listenPort @6 :UInt16; unixPath @7 :Text; bootId @8 :Text; pid @9 :Int32;
  resources @10 :List(Resource); free @11 :List(Resource); labels @12 :List(Label); devices @13 :List(Device);
  heardMs @14 :UInt64; pythonVersion @15 :Text; zygoteReady @16 :Bool;
  why @17 :Text;  # it is in that state; empty: nothing is wrong with it
  preimports @18 :List(Text);  # as in Heartbeat
  measures @19 :List(Measure); # its latest; empty: none are known
}
struct GetStatus { none @0 :Bool; }
struct ClusterStatus {
  clusterId @0 :ClusterId; headIncarnation @1 :UInt64; address @2 :Text; pid @3 :Int32; upMs @4 :UInt64;
  nodes @5 :List(NodeInfo); launches @6 :List(LaunchInfo); version @7 :Text; actorCount @8 :UInt32; groupCount @9 :UInt32;
}
# `user`: whose token it is; empty: the asker's own.
struct CreateToken { role @0 :Role; ttlS @1 :UInt64; singleUse @2 :Bool; note @3 :Text; user @4 :Text; }
struct TokenCreated { token @0 :Text; id @1 :TokenId; expiresUs @2 :UInt64; }
struct TokenInfo { id @0 :TokenId; role @1 :Role; expiresUs @2 :UInt64; revoked @3 :Bool; singleUse @4 :Bool; uses @5 :UInt32; note @6 :Text; createdUs @7 :UInt64; user @8 :Text; }
struct ListTokens { none @0 :Bool; }
struct TokenList { tokens @0 :List(TokenInfo); }
# Answer: TokenRevoked: what it had opened is ended, but for detached launches, and but at nodes that do not hear the head:
# those let its certificates in until these end, at the latest then.
struct RevokeToken { id @0 :TokenId; }
struct TokenRevoked { detached @0 :List(LaunchInfo); cutOff @1 :List(Text); untilUs @2 :UInt64; }
struct StopCluster { reason @0 :Text; }

# ---- several people ----
# By the administrator alone (head/core/nodes/roles.h). `caps` take the place of those of the same kinds, `lifted` names kinds without a cap from now on.
# Answer: UsageList, of this user.
struct SetQuota { user @0 :Text; caps @1 :List(Cap); lifted @2 :List(CapKind); }
struct GetUsage { user @0 :Text; mine @1 :Bool; }   # of one user, of the asker (`mine`), or of all. Answer: UsageList
# `share`: the largest part, over all resources, of what the cluster could have given in the last 24 hours, that this user held.
struct UserUsage { user @0 :Text; held @1 :List(Resource); running @2 :UInt32; queued @3 :UInt32; caps @4 :List(Cap); share @5 :Float64; }
struct UsageList { users @0 :List(UserUsage); total @1 :List(Resource); asker @2 :Text; }   # asker: the user who asks
struct DrainNode { node @0 :NodeId; reason @1 :Text; }   # by a worker without an id: it was told to end, and starts nothing more

# What has happened, of what a person asks for afterwards: the latest 1,000 since the head started, the oldest first.
enum Severity { info @0; warning @1; error @2; }
enum EventSource { head @0; node @1; actor @2; launch @3; }
struct ClusterEvent {
  number @0 :UInt64; wallUs @1 :UInt64; severity @2 :Severity; source @3 :EventSource;
  node @4 :NodeId; actor @5 :ActorId; launch @6 :LaunchId; message @7 :Text;
}
struct ListEvents { none @0 :Bool; }
struct EventList { headIncarnation @0 :UInt64; events @1 :List(ClusterEvent); }

# ---- tasks: who has started them knows them, nobody else ----
# Asks all processes that have tasks but the asker's own; `ended`: for the latest that are over too; `limit`: of each process at
# most. Answer: TellTasks, whose `owners` says how many were asked. Each of these answers once, by TasksTold, which is passed on.
struct ListTasks { ask @0 :RequestId; limit @1 :UInt32; ended @2 :Bool; }
struct TellTasks { ask @0 :RequestId; limit @1 :UInt32; ended @2 :Bool; owners @3 :UInt32; }
# Attachment: the tasks, as troupe._tasks.lists writes them; empty: their process is gone. Without `ask`: this process has tasks,
# and is to be asked from now on. Answer: Ok.
struct TasksTold { ask @0 :RequestId; }

# ---- metrics of programs ----
enum MetricKind { counter @0; gauge @1; histogram @2; }
# Of a counter, how much it grew in this round; of a gauge, its value; of a histogram, what was observed in this round: `counts` by `bounds` and beyond
# the last, `value` their sum. `labels`: in the order of their keys.
struct MetricSeries { labels @0 :List(Label); value @1 :Float64; counts @2 :List(UInt64); }
struct MetricFamily { name @0 :Text; kind @1 :MetricKind; help @2 :Text; bounds @3 :List(Float64); series @4 :List(MetricSeries); }
# What one process (`source`) has counted since its last round. A round that was taken before is not counted again. A gauge that is not in a round
# for 60 s is forgotten. Answer: MetricsTaken.
struct ReportMetrics { source @0 :RequestId; round @1 :UInt64; families @2 :List(MetricFamily); }
struct MetricsTaken { refused @0 :List(Text); }    # why some were not taken, for people

# ---- certificates of processes, for calls between hosts ----
# Asks for a certificate for a key made in the asking process: `request` is its signing request (DER). By a
# client's own session: for that client. Relayed: for the actor or rank that the process is, if the head has
# put it on the relaying worker's node. Answer: ProcessCertificate.
struct CertifyProcess { request @0 :Data; }
struct ProcessCertificate { certificate @0 :Data; caCertificate @1 :Data; }        # PEM

# ---- logs and blobs, answered by a worker ----
# `ageMs`, not 0: at offset 0, what was written longer ago is left out. Sent to the head: the end of a job's log that is kept there (KeepLog).
struct ReadLog {
  launch @0 :LaunchId; actor @1 :ActorId; rank @2 :Int32 = -1; stderr @3 :Bool; offset @4 :UInt64; bytesMax @5 :UInt32; waitMs @6 :UInt32; epoch @7 :UInt64;
  ageMs @8 :UInt64;
}
struct LogChunk { offset @0 :UInt64; next @1 :UInt64; ended @2 :Bool; droppedBytes @3 :UInt64; }   # attachment: text
# More of several at once: the answer comes when one of them has more, when one that is `over` (its asker knows that its process
# ends) has no more to come, or after waitMs. One of round n does not wait once its asker has said `enough` n, before or after.
# Attachment: the texts, in the order of the parts.
struct LogStream { actor @0 :ActorId; stderr @1 :Bool; offset @2 :UInt64; over @3 :Bool; }
struct ReadLogs { streams @0 :List(LogStream); bytesMax @1 :UInt32; waitMs @2 :UInt32; round @3 :UInt64; enough @4 :UInt64; }
struct LogPart { stream @0 :UInt32; next @1 :UInt64; bytes @2 :UInt32; droppedBytes @3 :UInt64; ended @4 :Bool; pid @5 :Int32; }   # pid: of who writes it now; 0: nobody does
struct LogParts { parts @0 :List(LogPart); }
# Stacks of processes that run: of a launch (one rank or, -1, all) or of an actor. Answer: StackDump.
struct ReadStacks { launch @0 :LaunchId; actor @1 :ActorId; rank @2 :Int32 = -1; native @3 :Bool; }
struct StackDump { processes @0 :UInt32; }         # attachment: JSON as troupe._tracing.stacks writes it
# Samples of where such processes spend their time, `ratePerS` a second for durationMs. `format`: what is written of each. Answer: ProfileDump.
enum ProfileFormat { flamegraph @0; speedscope @1; collapsed @2; }
struct ReadProfile {
  launch @0 :LaunchId; actor @1 :ActorId; rank @2 :Int32 = -1; durationMs @3 :UInt32; ratePerS @4 :UInt32;
  idle @5 :Bool; native @6 :Bool; subprocesses @7 :Bool; format @8 :ProfileFormat;
}
struct ProfileDump { processes @0 :UInt32; }       # attachment: JSON as troupe._tracing.profiles writes it
# What processes of this node recorded within the last sinceMs: those of a launch, an actor, or, with neither, all. sinceMs 0: the clock alone.
# `callsEvery`, where it is not 0: for callsForMs from now one actor call in so many is recorded, too. Answer: TimelinePart.
struct ReadTimeline { launch @0 :LaunchId; actor @1 :ActorId; sinceMs @2 :UInt32; callsEvery @3 :UInt32; callsForMs @4 :UInt32; bytesMax @5 :UInt32; }
# Nanoseconds of this node's CLOCK_BOOTTIME at which the question came and the answer left. Attachment: as troupe._tracing.rings packs it.
struct TimelinePart { receivedNs @0 :UInt64; answeredNs @1 :UInt64; rings @2 :UInt32; }
struct PutBlob { sha256 @0 :Data; offset @1 :UInt64; sizeBytes @2 :UInt64; }       # attachment: a chunk. Answer: Ok
struct GetBlob { sha256 @0 :Data; offset @1 :UInt64; }                             # answer: BlobChunk
struct BlobChunk { offset @0 :UInt64; sizeBytes @1 :UInt64; found @2 :Bool; }      # attachment: the chunk
