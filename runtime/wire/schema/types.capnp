@0xd1f0a3c2b4e59601;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire::schema");
# Words every other schema uses. Structs only, never an `interface`; append fields, never reuse a number.

struct Id { hi @0 :UInt64; lo @1 :UInt64; }
using ClusterId = Id;
using NodeId = Id;
using LaunchId = Id;
using ActorId = Id;
using GroupId = Id;
using ProcessId = Id;
using SessionId = Id;
using RequestId = Id;
using TokenId = Id;

enum Role { none @0; worker @1; client @2; observer @3; process @4; head @5; }
enum Strategy { pack @0; spread @1; strictPack @2; strictSpread @3; }
enum Outcome { none @0; succeeded @1; failed @2; cancelled @3; }
# command: the record of a `troupe run`: no ranks; `ranks` nodes are waited for, its driver is a client.
# What the death of a rank means to its launch, which goes on without it (`shrink`) or with another process in its place (`replace`) while enough
# ranks are left; not of one whose code raised.
# A rank that others wait for in a collective: where it runs, and its main thread is, as far as it says so itself.
struct LateRank { rank @0 :UInt32; host @1 :Text; pid @2 :Int32; where @3 :Text; }
# What a rank waits for in a group of torch's: an operation of all of its ranks; a message from one rank, or from whichever sends one; that one takes a
# message; or that all come to make the group.
enum GroupWait { collective @0; receive @1; receiveAny @2; send @3; making @4; }
enum RankDeath { fail @0; shrink @1; replace @2; }
enum LaunchMode { distributed @0; driver @1; command @2; }
enum LaunchState { queued @0; reserving @1; starting @2; running @3; terminal @4; stopping @5; }   # stopping: its ranks have been told to end, its marker follows
enum ActorState { pending @0; starting @1; alive @2; dead @3; unavailable @4; }   # unavailable: its node is lost without a verdict, it may still run
enum GroupState { pending @0; created @1; removed @2; infeasible @3; rescheduling @4; }
enum NodeState { alive @0; suspect @1; dead @2; draining @3; }

# What the administrator of a cluster limits for one user: what all that is theirs holds together (`gpus`, `cpus`: in ten-thousandths), and how many
# launches of theirs, jobs included, run and wait at once.
enum CapKind { gpus @0; cpus @1; running @2; queued @3; }

# An amount in ten-thousandths, so that 0.1 GPU is exact.
struct Resource { name @0 :Text; tenThousandths @1 :UInt64; }
struct Cap { kind @0 :CapKind; most @1 :UInt64; }
struct Label { key @0 :Text; value @1 :Text; }

# A figure of a node or of one of its GPUs. `key` tells figures of one kind apart; what it names stands behind the kind.
enum MeasureKind {
  cpuRatio @0;             # processors that are busy, of all
  cpuCount @1;
  memoryUsedBytes @2;
  memoryFreeBytes @3;      # without swapping; what the page cache holds of files counts
  diskUsedBytes @4;        # file system
  diskFreeBytes @5;        # file system
  networkReceivedBytes @6; # interface; since its start
  networkSentBytes @7;     # interface; since its start
  pressureRatio @8;        # cpu, memory, io: of the last 10 s, in which some process waited for it
  storeUsedBytes @9;
  storeFreeBytes @10;
  componentCpuSeconds @11; # worker, zygote, rank, actor: of the processes that run
  componentMemoryBytes @12; # likewise
  gpuUtilizationRatio @13;
  gpuMemoryUsedBytes @14;
  gpuMemoryTotalBytes @15;
  gpuPowerWatts @16;
  gpuEnergyJoules @17;     # since the driver was loaded
  gpuTemperatureCelsius @18;
  gpuSmClockHertz @19;
  gpuPcieReplays @20;      # since the driver was loaded
  gpuXidErrors @21;        # XID number: errors since the worker started
  gpuLastXid @22;
}
struct Measure { kind @0 :MeasureKind; key @1 :Text; gpu @2 :Int32 = -1; value @3 :Float64; }   # gpu: as Device.index
# `sealed`: in the journal alone, `value` is encrypted (head/journal).
struct EnvVar { name @0 :Text; value @1 :Text; sealed @2 :Bool; }

struct Bundle { index @0 :UInt32; resources @1 :List(Resource); labels @2 :List(Label); }   # labels: a selector of its own
# Selectors: key and term, "v", "!v", "in(a,b)" or "!in(a,b)".
struct Selector { terms @0 :List(Label); }
# Which nodes may be used: where all of `labels` hold; when nothing can be placed so, of the first of `fallbacks` with
# which it can. `level`: in one domain of it (a rack), or, unless required, in as few as will do.
struct Where { labels @0 :List(Label); fallbacks @1 :List(Selector); level @2 :Text; levelRequired @3 :Bool; }
struct BundleGrant { index @0 :UInt32; gpuIds @1 :List(UInt32); }
struct BundlePlace { index @0 :UInt32; node @1 :NodeId; resources @2 :List(Resource); gpuIds @3 :List(UInt32); ranks @4 :UInt32; }   # ranks: of a gang, there

# Why a rank, an actor or a driver failed. Code switches on it; `cause` says it to people.
enum FailureKind {
  unknown @0;           # nobody has said: a process that left no trace, a record older than kinds
  raised @1;            # its code raised: `exceptionType`, `traceback`
  calledExit @2;        # its code called sys.exit() with a code
  setupFailed @3;       # its runtime environment could not be set up: raised, too
  notStarted @4;        # its process could not be started
  exited @5;            # its process ended by itself with `exitCode`
  killed @6;            # by `signal`
  outOfMemory @7;       # by the kernel, for want of memory
  hung @8;              # it kept others waiting for longer than hang_timeout
  returnedEarly @9;     # it returned while others needed it
  noValue @10;          # its process ended with code 0 without returning a value
  valueNotKept @11;     # its value could not be stored
  missedReform @12;     # it did not come to the new group after a death
  driverSilent @13;     # the driver did not renew its lease
  nodeLost @14;         # its node ended
  nodeUnreachable @15;  # its node is not heard of: it may still run
  missing @16;          # its node came back and no longer runs it
  reservationLost @17;  # its node no longer holds what was reserved for it
  preempted @18;        # made room for a higher priority
  groupRemoved @19;     # its placement group was removed
  killRequested @20;    # troupe.kill
  unreferenced @21;     # no reference to the actor was left
  ownerEnded @22;       # what made it ended
  launchEnded @23;      # its launch, or that one's attempt, ended
  stopped @24;          # told to end: the launch failed elsewhere, was cancelled, or its node leaves
  timedOut @25;         # the launch's `timeout`
  predecessorFailed @26; # the launch was to start after one that did not succeed
  fenced @27;           # its node had no word from the head for too long, and ended it
  nodeLeaves @28;       # its node left, and took it along
}
# What is known of the end of a rank, an actor or a driver.
struct Failure {
  rank @0 :Int32 = -1;
  node @1 :NodeId;
  nodeName @2 :Text;
  host @3 :Text;
  pid @4 :Int32;
  exitCode @5 :Int32;
  signal @6 :Int32;
  cause @7 :Text;              # one sentence a person reads
  exceptionType @8 :Text;      # "builtins.KeyError", where its code raised
  traceback @9 :Text;
  logTail @10 :Text;           # last lines of its stderr
  peakRssKib @11 :UInt64;
  symptom @12 :Bool;           # the connection or the patience of a collective ended: another rank may be the cause
  # Of a process that the kernel killed for want of memory: what its control group may use, or the machine has, and its
  # `memory=`. 0: not known, none.
  memoryLimitBytes @13 :UInt64;
  memoryAskedBytes @14 :UInt64;
  kind @15 :FailureKind;
  located @16 :Bool;           # `cause` itself names the rank or actor, its node and its process
}

# A payload kept by content: the SHA-256 of its bytes, and a node that has it.
# The head fills in the holder's address when it passes the reference on to a worker.
struct BlobRef {
  sha256 @0 :Data; sizeBytes @1 :UInt64; holder @2 :NodeId;
  host @3 :Text; port @4 :UInt16; unixPath @5 :Text; bootId @6 :Text;   # of the holder
}
struct RuntimeEnvironment {
  env @0 :List(EnvVar);
  workingDirectory @1 :Text;
  importPath @2 :List(Text);
  freshInterpreter @3 :Bool;   # a variable in `env` is read at import time
  pythonVersion @4 :Text;      # "3.11" of the caller; a worker refuses another minor version
  travelled @5 :List(Text);    # what was taken along, for people: names of the caller's variables, all else as kind=text (`_code.travelled`)
  notTaken @6 :List(Text);     # names of those that the program set and that were not
  preimport @7 :List(Text);    # modules that a process has imported when it is forked
  setup @8 :Text;              # with these: what else is on its import path, as JSON (`_code.runtime_env.SETUP`); empty: nothing
  preimportInstalled @9 :Bool; # the interpreter's own packages have them all, whatever `importPath` is
  program @10 :Text;           # not empty: an actor's process is this executable, which registers its class, and no interpreter (`actors/api`)
}

struct ActorAddress {
  actor @0 :ActorId;
  node @1 :NodeId;
  bootId @2 :Text;
  unixPath @3 :Text;           # on the host with this boot id
  host @4 :Text;               # the worker's port, for other hosts: TLS, server name = `process`
  port @5 :UInt16;
  incarnation @6 :UInt64;
  pid @7 :Int32;
  process @8 :ProcessId;       # of this incarnation; its certificate says `actor`
  reprName @9 :Text;           # how its instance is shown, where its class says so; for people
}
