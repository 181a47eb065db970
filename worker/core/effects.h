// Effects that WorkerCore asks its shell for, in order. Values only: the shell of production does
// them with sockets and processes, the simulator with its own world.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"
#include "worker/core/zygote_table.h"

namespace troupe::worker {

/// The files of a process's stdout and stderr: `<logs>/<folder>/<stem>.out` and `.err`.
struct LogPlace {
  std::string folder;
  std::string stem;
};

/// Send on the session with the head; it is up.
struct ToHead {
  wire::Message message;
};
/// Send on a process's control channel.
struct ToProcess {
  ProcessId process;
  wire::Message message;
};
/// Send a whole frame on a process's control channel, as it came.
struct FrameToProcess {
  ProcessId process;
  std::string frame;
};
/// Start a process: answer OnForked or OnStartFailed; then OnProcessMessage*, OnExited and
/// OnDrained in either order, and at last OnGone.
struct StartProcess {
  wire::ForkRequest request;
  bool fresh_interpreter = false;  // exec, never fork
  std::string program;             // not empty: this executable instead of an interpreter
  ZygoteKey zygote;  // modules to have been loaded already
  bool may_exec = false;           // exec when the zygote is not ready, rather than wait for it
  wire::Message begin;             // first message on the channel, unless has_begin is false
  bool has_begin = false;
  std::string socket_path;  // removed when the process is gone
  LogPlace log;
  // Declared memory; 0: none. A process that uses more goes first when memory runs out
  std::uint64_t memory_bytes = 0;
};
/// Send a signal to a process; SIGKILL goes to its group and descendants too, others where
/// `to_group`. A start that is still queued is dropped and answered with OnStartFailed.
struct SignalProcess {
  ProcessId process;
  int signal = 0;
  bool to_group = false;
};
/// Read all that these processes' channels hold, and look which of them have begun to exit without
/// having been seen to: answer OnSwept(ticket, those). What was read, and ends that were seen, come
/// before the answer.
struct SweepProcesses {
  std::uint64_t ticket = 0;
  std::vector<ProcessId> processes;
};
/// Make a payload available as a file: answer OnBlob(ticket, path or error).
struct FetchBlob {
  std::uint64_t ticket = 0;
  wire::BlobRef blob;
};
/// The file of this ticket is no longer needed here.
struct ForgetBlob {
  std::uint64_t ticket = 0;
};
/// Send KeepLog with the end of a log, `bytes_max` of it; nothing where there is none.
struct SendLogEnd {
  wire::KeepLog message;
  LogPlace place;
  std::uint32_t bytes_max = 0;
};
/// Keep a rank's value on disk under its digest: answer OnValueKept. `from_file`: it lies in the
/// process's result file already.
struct KeepValue {
  ProcessId process;
  std::string bytes;
  bool from_file = false;
};
/// Call OnTimer at this time, or a little later; replaces the one asked for before.
struct WakeAt {
  Instant at;
};
/// Write what must survive this process.
struct SaveState {
  NodeId node;
  std::string name;
  std::uint64_t incarnation = 0;
  std::uint64_t head_incarnation = 0;
};
/// End the session with the head; the shell dials again unless it is leaving.
struct DropHead {
  std::string reason;
};
/// The head knows this node now.
struct Joined {
  NodeId node;
  std::string name;
};
/// Certificates of these tokens are refused from now on, and connections ended that were opened by
/// them.
struct RevokeTokens {
  std::vector<TokenId> tokens;
};
/// See whether another node's worker answers: answer OnPeerProbed, within 2 s.
struct DialPeer {
  wire::ProbePeer probe;
};
/// A process sent a message without an id that nobody here takes: a fault of ours. Once per
/// process.
struct NotTaken {
  ProcessId process;
  std::string_view kind;
};
/// Nothing runs here any more: leave.
struct LeaveNode {
  std::string reason;
};

using Effect = std::variant<ToHead, ToProcess, FrameToProcess, StartProcess, SignalProcess,
                            SweepProcesses, FetchBlob, ForgetBlob, SendLogEnd, KeepValue, WakeAt,
                            SaveState, DropHead, Joined, DialPeer, RevokeTokens, NotTaken,
                            LeaveNode>;
using Effects = std::vector<Effect>;

}  // namespace troupe::worker
