// How the ranks of a fake communicator find each other: as NCCL's, the listener behind a unique id
// lives in the process that made it, and initialisation fails with that process.
//
// With several ids the ranks are shared out over their listeners, which report to the first one.
#pragma once

#include <atomic>
#include <string>

#include "actors/train/nccl_types.h"
#include "runtime/base/unique_fd.h"

namespace troupe::fakes {

/// Makes an id and the thread behind it; false where the system has no socket left.
bool MakeUniqueId(train::NcclUniqueId& id);
bool IsUniqueId(const train::NcclUniqueId& id);

struct JoinRequest {
  const train::NcclUniqueId* ids;
  int id_count;
  int rank, size;
  int wake_fd;  // readable once the join is to end
};

/// Blocks until all ranks have come; the descriptor of their segment, or an invalid one with what
/// happened in `error`.
UniqueFd Join(const JoinRequest& request, const std::atomic<bool>& stop, std::string& error);

}  // namespace troupe::fakes
