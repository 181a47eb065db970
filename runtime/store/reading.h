// A reader's mapping of somebody's segment. The maker's own views lie over one too: forked children
// inherit it, and no mapping of this kind can change the bytes for anybody.
//
// ReadOnly: the pages themselves; writing to them ends the process. Private: copy on write; what is
// written stays here. A descriptor comes from another process: it is looked at (sealed against
// shrinking and writing, of at least the size that was told) before anything is mapped, so that a
// reader can neither be sent a SIGBUS nor be shown bytes that change.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/store/core/object_id.h"

namespace troupe::store {

class Reading {
 public:
  /// kInvalid: the descriptor is not a segment of so many bytes, or not sealed.
  static StatusOr<Reading> ReadOnly(int fd, std::uint64_t bytes);
  static StatusOr<Reading> Private(int fd, std::uint64_t bytes);

  Reading(Reading&& other) noexcept;
  Reading& operator=(Reading&& other) noexcept;
  ~Reading();

  /// The value's bytes; private mappings may write there. kInvalid: the location is not inside the
  /// segment. kFenced: the slot holds another generation: the object is gone.
  StatusOr<char*> At(const Location& location) const;

  std::uint64_t bytes() const { return bytes_; }

 private:
  Reading(char* data, std::uint64_t bytes) : data_(data), bytes_(bytes) {}
  static StatusOr<Reading> Map(int fd, std::uint64_t bytes, int protection, int flags);

  char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::store
