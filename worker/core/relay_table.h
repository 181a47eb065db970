// Requests of this node's processes that the head has not answered yet.
//
// Pure; view: one node. A request is carried to the head in a Relay and its answer comes back in a
// RelayDown. When the session with the head ends, the requests wait and are sent again to the next
// one: they carry ids of their own, so the head knows a repetition. The few kinds that do not are
// answered with kUnknownOutcome instead: whether they took effect is not known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "worker/core/outbox.h"
#include "worker/core/process_table.h"

namespace troupe::worker {

class RelayTable {
 public:
  explicit RelayTable(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Takes a request (id != 0) of `process` up. Too large for a frame or too many waiting: the
  /// process gets an ErrorReply.
  void Up(const Process& process, wire::Message request, const Outbox& outbox, Effects* effects);
  /// An answer or push of the head, passed on verbatim. False when `frame` is not a message.
  bool Down(ProcessId process, const std::string& frame, Effects* effects);

  /// The head knows this node. One that was started again has forgotten who watches what: processes
  /// are told of it, and ask anew.
  void OnRegistered(const Outbox& outbox, const wire::Welcome& head, const ProcessTable& processes,
                    Effects* effects);
  void OnDisconnected(Effects* effects);
  void OnGone(ProcessId process);
  std::size_t size() const { return pending_.size(); }

 private:
  struct Pending {
    ProcessId process;
    std::uint64_t id = 0;
    bool repeatable = true;
    wire::Message relay;
  };
  using Order = std::uint64_t;
  void Drop(std::map<Order, Pending>::iterator entry);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Order next_ = 1;
  std::uint64_t head_incarnation_ = 0;  // the one that processes were told of
  std::map<Order, Pending> pending_;
  std::map<std::pair<ProcessId, std::uint64_t>, Order> by_id_;
};

}  // namespace troupe::worker
