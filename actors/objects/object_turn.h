// A scoped use of the object store's state: the store is locked while it lives, and at its end the
// effects are applied: first those of the reference table, then, without the lock, answers are
// given, completions posted, and threads that wait for a change are woken.
//
// Internal to actors/objects. A slot may end when its answer is given, and its end is a turn of its
// own; so no slot is given back while a turn is on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/net/now.h"
#include "actors/objects/object_store.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

/// An answer as a value of the table, which others may ask for: its flags, its bytes.
store::Value InlineOf(std::uint16_t flags, std::string_view bytes);

/// Returns the completion that gives an object the answer of its slot.
std::unique_ptr<Completion> EndOf(ObjectStore& store, Answer* slot, const store::ObjectId& id);

class ABSL_SCOPED_LOCKABLE ObjectStore::Turn {
 public:
  explicit Turn(ObjectStore& store) ABSL_EXCLUSIVE_LOCK_FUNCTION(store.mutex_) : store_(store) {
    store_.mutex_.Lock();
  }
  ~Turn() ABSL_UNLOCK_FUNCTION();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// The time, asked for by the first who needs it.
  class Clock {
   public:
    operator Instant() const {
      if (at_ == Instant{}) at_ = Now();
      return at_;
    }

   private:
    mutable Instant at_{};
  };
  const Clock now{};

 private:
  ObjectStore& store_;
};

}  // namespace troupe::actors
