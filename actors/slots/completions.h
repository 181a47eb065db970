// The finisher of answers, which also runs their completions: the caller's reactor, as the rooms
// below it know it.
//
// View of one process. Thread-safe; nothing here blocks. What makes answers of its own (objects,
// values from other hosts) is handed this, so that only who waits for answers needs to know how
// threads wait.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

class Completions {
 public:
  virtual ~Completions() = default;

  /// Runs `completion`, once, on a thread of the reactor's own when `slot` is done. False: that
  /// thread was stopped, and the completion is dropped.
  virtual bool OnDone(Answer* slot, std::unique_ptr<Completion> completion) = 0;
  /// Runs it there as soon as may be.
  virtual void Post(std::unique_ptr<Completion> completion) = 0;
  /// Finishes a slot that belongs to no channel (a put, a group that is ready), and wakes who waits
  /// for it. False: it was finished already.
  virtual bool Complete(Answer* slot, std::uint16_t flags, std::string_view bytes) = 0;
  /// A number that no other answer of this process has.
  virtual std::uint64_t NextLocalId() = 0;
  /// 16 hex digits that tell this process from all others.
  virtual const std::string& incarnation() const = 0;

  /// This process's; after a fork the child gets another one.
  static Completions& Current();
  /// Says where they are found; the reactor does, before main().
  static bool SetSource(Completions& (*source)());
};

}  // namespace troupe::actors
