@0xd1f0a3c2b4e59605;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# Worker <-> zygote and worker <-> its processes.
using import "types.capnp".NodeId;
using import "types.capnp".LaunchId;
using import "types.capnp".ActorId;
using import "types.capnp".GroupId;
using import "types.capnp".ProcessId;
using import "types.capnp".ClusterId;
using import "types.capnp".EnvVar;
using import "types.capnp".Resource;
using import "types.capnp".Outcome;
using import "types.capnp".Failure;
using import "types.capnp".LateRank;
using import "types.capnp".GroupWait;
using import "types.capnp".LaunchMode;
using import "types.capnp".ActorAddress;

enum ProcessKind { rank @0; actor @1; store @2; probe @3; }

# worker -> zygote, with three descriptors: control, stdout, stderr.
struct ForkRequest {
  process @0 :ProcessId;
  kind @1 :ProcessKind;
  env @2 :List(EnvVar);        # the whole environment of the child
  workingDirectory @3 :Text;
  importPath @4 :List(Text);
  title @5 :Text;              # shown by ps, e.g. "troupe: rank 3 of 7f3a"
  threads @6 :UInt32;          # torch.set_num_threads
  cpus @7 :List(UInt32);       # affinity; empty: all
}
struct ForkReply { process @0 :ProcessId; pid @1 :Int32; error @2 :Text; }
struct ChildExit { pid @0 :Int32; status @1 :Int32; maxRssKib @2 :UInt64; }       # wait status as wait4 gives it
# `later`: not usable, for something is not on this host yet that a process with a session can fetch.
struct ZygoteReady { pid @0 :Int32; importMs @1 :UInt32; threads @2 :UInt32; usable @3 :Bool; reason @4 :Text; pythonVersion @5 :Text; modules @6 :List(Text); later @7 :Bool; }

# worker -> process, the first message on its control channel.
struct RankBegin {               # attachment: the payload
  launch @0 :LaunchId; epoch @1 :UInt64; generation @2 :UInt64;
  rank @3 :UInt32; localRank @4 :UInt32; worldSize @5 :UInt32; localWorldSize @6 :UInt32;
  nodeRank @7 :UInt32; nodeCount @8 :UInt32;
  mode @9 :LaunchMode;
  group @10 :GroupId;
  clusterId @11 :ClusterId; node @12 :NodeId;
  socketPath @13 :Text;          # where to serve calls (driver mode); empty: nowhere
  name @14 :Text; nodeName @15 :Text; bootId @16 :Text;
  perRank @17 :List(Resource);
  payloadPath @18 :Text;         # not empty: the payload is this file, the attachment is empty
  resultPath @19 :Text;          # where to write a value over 8 MiB (RankResult.inFile)
  actor @20 :ActorId;            # the rank as an actor (driver mode): its address names this id
  exitGraceMs @21 :UInt32 = 60000;
  life @22 :UInt64;              # not 0: it is in the place of a process that died, and its group is formed by GroupJoin and GroupFormed
  hangMs @23 :UInt32;            # as in LaunchSpec
}
struct RankPrepared { serving @0 :Bool; failure @1 :Failure; }   # process -> worker: unpickled and waiting. Attachment: pickled exception if it failed
struct RankRun {                 # worker -> process: go
  masterHost @0 :Text; masterPort @1 :UInt16;
  rankActors @2 :List(ActorAddress);
  nodes @3 :List(NodeId);
  env @4 :List(EnvVar);          # MASTER_ADDR, ... known only now
  groupSecret @5 :Data;          # of the launch: never in the environment, nor in its store
}
# process -> worker: the function returned or raised. Attachment: pickled value or exception.
struct RankResult { outcome @0 :Outcome; failure @1 :Failure; inFile @2 :Bool; }
# process -> worker: from here on it runs a program, which succeeds if it ends with 0 and without a RankResult. Attachment: its pickled value then.
# `command`: what it executes in its place, by exec: it says nothing more on this channel, and signals are the worker's to send; empty: itself.
struct RankProgram { command @0 :Text; }
# worker -> process: the marker is there (or this epoch is fenced): leave with exitCode.
# `ownTime`: it is not needed any more, and leaves as a Python program does at its end.
struct ProcessEnd { exitCode @0 :Int32; outcome @1 :Outcome; reason @2 :Text; ownTime @3 :Bool; }
# worker -> process: it is to raise this signal in its main thread, and its code to stop; 0: it goes on. `where`: before that it
# says where its main thread is, with ProcessWhere. `peerLost`: another rank has failed, so collectives in which this one waits never
# end: it ends their connections.
struct ProcessStop { signal @0 :Int32; graceMs @1 :UInt32; reason @2 :Text; exitCode @3 :Int32; where @4 :Bool; peerLost @5 :Bool; }
struct ProcessWhere { text @0 :Text; }
struct GroupJoin { groupEpoch @0 :UInt64; }    # rank -> worker, after PeersLost: it has left its former group, and waits for the next one
# worker -> rank: who it is in the group of this epoch, and where that meets.
struct GroupFormed { groupEpoch @0 :UInt64; rank @1 :UInt32; worldSize @2 :UInt32; masterHost @3 :Text; masterPort @4 :UInt16; }

# rank -> worker: as RanksLate.
struct GroupLate { groupEpoch @0 :UInt64; torchGroup @1 :Text; operation @2 :UInt64; op @3 :Text; waitedMs @4 :UInt32; late @5 :List(LateRank); waiting @6 :List(UInt32); }
# rank -> worker: it waits in operation `operation` of those that `key` names, which ends only once the ranks `awaited` have begun as many. They are numbered as
# in the group of this epoch, and have returned (PeersReturned). `op`: the operation's name; `where`: its main thread is.
struct GroupAwaits {
  groupEpoch @0 :UInt64; torchGroup @1 :Text; key @2 :Text; kind @3 :GroupWait; operation @4 :UInt64; op @5 :Text; awaited @6 :List(UInt32); where @7 :Text;
}
# worker -> rank: how many operations of this group have you begun? Answer: ProcessBegun, with where its main thread is, and whether that waits in a collective.
# `key` of GroupAwaits, where it is not empty: how many of the operations that it names have you begun? `waits` of the answer: more may follow.
struct ProcessAskBegun { question @0 :UInt64; torchGroup @1 :Text; key @2 :Text; }
struct ProcessBegun { question @0 :UInt64; begun @1 :UInt64; where @2 :Text; waits @3 :Bool; }

struct ActorBegin {              # attachment: pickled class and arguments
  actor @0 :ActorId; incarnation @1 :UInt64; name @2 :Text; className @3 :Text; namespace @4 :Text;
  socketPath @5 :Text; maxConcurrency @6 :UInt32;
  clusterId @7 :ClusterId; node @8 :NodeId; launch @9 :LaunchId; epoch @10 :UInt64;
  gpuIds @11 :List(UInt32); nodeName @12 :Text; bootId @13 :Text; group @14 :GroupId;
  payloadPath @15 :Text;         # as in RankBegin
}
# Attachment: pickled exception of the constructor. `awaits`: not yet, see ActorStarted; another one follows.
struct ActorReady { failed @0 :Bool; failure @1 :Failure; retired2 @2 :Data; awaits @3 :Bool; reprName @4 :Text; }
# worker -> actor that may be re-created elsewhere: it may run until then (CLOCK_BOOTTIME), and ends itself, should its
# worker be unable to say or do more.
struct ActorLease { untilNs @0 :UInt64; }
# process for tasks -> worker: its task waits, or does not any more; so much of its CPUs (ten-thousandths) is not needed meanwhile.
# `lender`: the actor that they are lent by; nil: they are its own.
struct CpuLent { waits @0 :Bool; amount @1 :UInt64; lender @2 :ActorId; }
struct StoreReady { port @0 :UInt16; groupSecret @1 :Data; }   # `groupSecret`: random bytes
