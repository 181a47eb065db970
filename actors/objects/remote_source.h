// The source of the value of an object that came, by name, from another host.
//
// The object store calls it with its lock held: an implementation takes no lock but its own, and
// returns at once.
#pragma once

#include <cstdint>

#include "runtime/store/core/object_id.h"

namespace troupe::actors {

class RemoteSource {
 public:
  virtual ~RemoteSource() = default;
  /// Somebody asks for the value. `number`: of the object here.
  virtual void Want(const store::ObjectId& name, std::uint64_t number) = 0;
  /// Nobody holds it here any more.
  virtual void LetGo(const store::ObjectId& name, std::uint64_t number) = 0;
  /// Notes that others have the life `name` from this process, or do no more.
  virtual void LentOn(const store::ObjectId& name, std::uint64_t number, bool lent) = 0;
};

}  // namespace troupe::actors
