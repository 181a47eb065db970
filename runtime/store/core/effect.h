// Effects that the reference table asks its shell for. Plain values, in the order they are to be
// done.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/store/core/message.h"

namespace troupe::store {

/// Write it on the peer's connection; made only while there is one. The frame's acknowledgement
/// field is References::AppliedOf(peer) at the time of writing.
struct SendFrame {
  ProcessId peer;
  ControlFrame frame;
};
/// Something of the peer's was applied: acknowledge with the next frame, or within a millisecond.
struct SendAck {
  ProcessId peer;
};
/// Connect to this peer: there is something for it and no connection.
struct Connect {
  ProcessId peer;
};
/// The pair is over while both may live: close the connection, refuse the peer from now on.
struct Refuse {
  ProcessId peer;
  std::string why;
};
/// Ask this node's worker to tell of the process's end. Unwatch: no longer of interest.
struct Watch {
  ProcessId process;
};
struct Unwatch {
  ProcessId process;
};
/// The object's value, or what is known of the reference, has changed: whoever waits for it may
/// look.
struct Wake {
  ObjectId object;
};
/// Nobody holds it any more: what the shell keeps for it can go.
struct Forgotten {
  ObjectId object;
};
/// For the pool of this process: a Free of a slot it made, said by `owner`.
struct FreeSlot {
  ProcessId owner;
  SlotId slot;
  std::uint64_t generation = 0;
  bool clean = true;
};
/// The slot's maker cannot be told: the worker of that node keeps it, and is told instead.
struct FreeAtKeeper {
  NodeId node;
  SlotId slot;
  std::uint64_t generation = 0;
};
/// For the pool: nothing made for that owner may ever be rewritten. Dead: and nobody needs it.
struct OwnerLost {
  ProcessId owner;
  bool dead = false;
};

using Effect = std::variant<SendFrame, SendAck, Connect, Refuse, Watch, Unwatch, Wake, Forgotten,
                            FreeSlot, FreeAtKeeper, OwnerLost>;
using Effects = std::vector<Effect>;

}  // namespace troupe::store
