// Inputs and outputs of the head's reducer: plain values.
//
// The shell (head/server) and the simulator move them; neither decides anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "head/core/machine/archive_records.h"
#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// The target of an answer or a push: a session, or a process behind a worker's session.
struct Route {
  SessionId session;
  ProcessId process;
  friend bool operator==(const Route& a, const Route& b) {
    return a.session == b.session && a.process == b.process;
  }
  friend bool operator<(const Route& a, const Route& b) {
    return a.session != b.session ? a.session < b.session : a.process < b.process;
  }
  bool IsNil() const { return session.IsNil(); }
};

/// An authenticated peer. `subject` is its id for life (of its certificate, or of its process).
struct SessionOpened {
  SessionId session;
  wire::Role role = wire::Role::kNone;
  Id128 subject;
  std::string host;
  bool local = false;  // true for the same host and user, by Unix socket
  TokenId token;       // by which it, or the certificate it showed, came; nil: none
  /// SHA-256 of the key that this session was given a certificate for; empty: it was given none.
  std::string issued_key_hash;
};
struct SessionClosed {
  SessionId session;
};
/// A message of a peer; `relay` is set when a worker carried it for one of its processes.
struct MessageFrom {
  SessionId session;
  std::optional<wire::Relay> relay;
  wire::Message message;
};
/// The instant asked for by Effects::wake_at has come.
struct Tick {};
/// Every event up to `sequence` is durable.
struct Appended {
  std::uint64_t sequence = 0;
};
/// Answer to Effects::probes: whether nobody listens where the node's worker did.
struct ProbeDone {
  NodeId node;
  std::uint64_t incarnation = 0;
  bool refused = false;
};
/// Answer to Effects::looks: what the process of a silent worker does, by the letter of
/// proc_pid_stat(5); 0: there is none.
struct WorkerSeen {
  NodeId node;
  std::uint64_t question = 0;
  char state = 0;
};
/// The disk is full (or no longer): only markers and what ends things is written.
struct DiskFull {
  bool full = false;
};
/// A peer proved this token when it joined.
struct TokenUsed {
  TokenId id;
};
/// Effects::plan_soon was said, and whatever else had come by then was handed in.
struct PlanNow {};
using Input = std::variant<SessionOpened, SessionClosed, MessageFrom, Tick, Appended, ProbeDone,
                           WorkerSeen, DiskFull, TokenUsed, PlanNow, Archived, Recalled>;

struct Row {
  std::uint64_t sequence = 0;
  wire::Event event;
};
struct Send {
  Route to;
  wire::Message message;
};
struct Close {
  SessionId session;
  std::string reason;
};
struct Probe {
  NodeId node;
  std::uint64_t incarnation = 0;
};
/// See what a worker's process on this host does.
struct Look {
  NodeId node;
  int pid = 0;
  std::uint64_t question = 0;
};
/// Sign the key of a request and answer with the certificate: what it says was decided.
struct Certify {
  Route to;
  std::uint64_t reply_to = 0;
  wire::Role role = wire::Role::kNone;
  Id128 subject;
  std::string request;  // DER, not looked at
  TokenId token;        // the certificate ends with it; nil: with none
};
/// The head keeps so much of the end of a job's log.
inline constexpr std::uint32_t kKeptLogBytes = 1u << 20;

/// The end of a job's log, which begins at `offset` of what was written.
struct KeptLog {
  LaunchId launch;
  std::uint64_t epoch = 0;
  std::uint64_t offset = 0;
  std::uint64_t lived_us = 0;  // when it came (lived_time.h)
  std::string text;
};
/// Read the kept end of a job's log from `offset` on and answer with it.
struct KeptLogRead {
  Route to;
  std::uint64_t reply_to = 0;
  LaunchId launch;
  std::uint64_t epoch = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes_max = 0;
};
/// In this order: rows to the journal (one batch), sends, closes.
struct Effects {
  std::vector<Row> append;
  std::vector<Send> sends;
  std::vector<Close> closes;
  std::vector<Probe> probes;
  std::vector<Look> looks;
  std::vector<Certify> certificates;
  std::vector<EndedRecord> archive;  // to write, in one transaction; answer: Archived
  std::vector<KeptLog> kept_logs;    // to write
  std::vector<KeptLogRead> kept_log_reads;
  std::vector<Recall> recalls;       // to read from the archive; answer: Recalled
  /// Records of launches that ended before that lived time are to go from the archive; 0: none.
  std::uint64_t archived_until_us = 0;
  std::optional<Instant> wake_at;  // replaces the earlier one
  bool plan_soon = false;          // hand in PlanNow, once, behind what is there already
  bool stop = false;               // end this head once the sends are out
};

}  // namespace troupe::head
