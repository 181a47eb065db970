// One use of the object store's state: locked, and at its end what follows from it is done. Internal.
#pragma once

#include <string>
#include <vector>

#include "actors/net/now.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

/// An answer as a value of the table, which others may ask for: its flags, its bytes.
store::Value InlineOf(std::uint16_t flags, std::string_view bytes);

/// What gives an object the answer of its slot, once that has it.
std::unique_ptr<Completion> EndOf(ObjectStore& store, Slot* slot, const store::ObjectId& id);

/// Gives a result its slot, as `then` says.
void Conclude(Completions& completions, Slot* slot, std::uint16_t flags, std::string_view body, ResultThen& then);

class ObjectStore::Turn {
 public:
  explicit Turn(ObjectStore& store) : store_(store), lock_(store.mutex_) {}
  /// Answers are given without the lock: a slot may end with that.
  ~Turn();
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
  std::unique_lock<std::mutex> lock_;
};

}  // namespace troupe::actors
