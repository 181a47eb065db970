// Who may ask a worker what, at its Unix socket and its TLS port: kind of request x role of who
// asks. Whoever has no place in a row is refused. Pure data; what the head answers to whom stands
// in head/core/role_table.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "runtime/wire/messages.h"

namespace troupe::worker {

struct PeerRow {
  std::size_t kind = 0;
  bool client = false;
  bool process = false;  // a rank or an actor
  bool head = false;
  // Another node, or whoever has shown a worker's token: it fetches what it is to run, and neither
  // looks at what runs here nor leaves anything.
  bool worker = false;
  bool observer = false;
};

namespace peer_rows {

template <class Kind>
constexpr std::size_t Of() {
  return wire::KindOf<wire::BodyFamily, Kind>::value;
}

inline constexpr bool no = false, yes = true;
inline constexpr std::array kPeers = {
    // client, process, head, worker, observer
    PeerRow{Of<wire::ReadLog>(), yes, yes, yes, no, yes},
    PeerRow{Of<wire::ReadLogs>(), yes, yes, yes, no, yes},
    PeerRow{Of<wire::ReadStacks>(), yes, yes, yes, no, no},
    PeerRow{Of<wire::PutBlob>(), yes, yes, yes, no, no},
    PeerRow{Of<wire::GetBlob>(), yes, yes, yes, yes, no},
};

}  // namespace peer_rows

/// Whether a worker answers a request of this kind to this role.
inline bool MayAsk(wire::Role role, std::size_t kind) {
  const auto& rows = peer_rows::kPeers;
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const PeerRow& each) { return each.kind == kind; });
  if (row == rows.end()) return false;
  switch (role) {
    case wire::Role::kClient: return row->client;
    case wire::Role::kProcess: return row->process;
    case wire::Role::kHead: return row->head;
    case wire::Role::kWorker: return row->worker;
    case wire::Role::kObserver: return row->observer;
    default: return false;
  }
}

}  // namespace troupe::worker
