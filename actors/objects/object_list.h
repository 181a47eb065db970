// A line of a list of the objects that a process knows.
#pragma once

#include <cstdint>

#include "runtime/store/core/borrowed_object.h"
#include "runtime/store/core/object_id.h"
#include "runtime/store/core/value.h"

namespace troupe::actors {

struct ListedObject {
  store::ObjectId name;  // as references say it
  bool owned = false;
  bool gone = false;  // a borrowed one whose owner has ended or has forgotten it
  store::ValueKind kind = store::ValueKind::kPending;
  std::uint64_t bytes = 0;
  store::Holds holds;  // holders in this process
  std::uint64_t lent = 0;       // processes and calls that hold it through this one
  std::uint64_t contained = 0;  // references inside its value
};

}  // namespace troupe::actors
