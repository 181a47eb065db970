// The arguments of one call, or one task, that are to come: how many are missing, and how their
// values are put in.
//
// Who keeps such calls back (PendingCalls, TaskPool) implements ArgumentKeeper, keeps a
// PendingArguments with each of them, and asks for word of the answers once it has let go of its
// lock:
//
//   std::vector<AnswerRef> answers = call.to_come.Answers();          // with the lock
//   AwaitArguments(shared_from_this(), number, std::move(answers));  // without it
//   ...
//   void ArgumentHere(number, answer):
//     if (call.to_come.Note(answer) == Came::kAll) call.to_come.FillIn(...)
//
// PendingArguments takes no lock, its keeper's mutex guards it; it owns a reference to each answer
// until FillIn().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/caller/argument_codec.h"
#include "actors/caller/pending_target.h"
#include "actors/objects/object_handles.h"
#include "actors/slots/answer.h"

namespace troupe::actors {

class PendingArguments {
 public:
  /// Nothing is to come.
  PendingArguments() = default;
  /// In the order of their places.
  explicit PendingArguments(std::vector<ArgumentToCome> to_come);

  /// Nothing was to come, or all of it was filled in.
  bool empty() const { return to_come_.empty(); }
  /// Some have no answer yet.
  bool missing() const { return missing_ != 0; }
  /// Returns the awaited answers, once per place, with a reference each.
  std::vector<AnswerRef> Answers() const;

  enum class Came : std::uint8_t { kOthersMissing, kAll, kFailed };
  /// Counts one of Answers(), which is done. kFailed: it is an error, and so the answer of the
  /// call.
  Came Note(const Answer& answer);

  enum class Filled : std::uint8_t { kGood, kTooLarge, kNoValue };
  /// Puts the values where they belong in `*encoded`, and what they name into `*held`; afterwards
  /// empty(). What lies in memory is named to a receiver in `place`, or copied, as the receiver can
  /// read it. `beside`: bytes of the frame that are not in `*encoded`. kTooLarge: one frame does
  /// not hold it. kNoValue: an answer holds no value.
  Filled FillIn(PendingTarget::Place place, std::size_t beside, const ArgumentCodec& values,
                std::string* encoded, Handles* held);

 private:
  std::vector<ArgumentToCome> to_come_;
  std::size_t missing_ = 0;
};

/// Flags of the answer of a call one of whose arguments is this error.
std::uint16_t FlagsOfFailedArgument(const Answer& argument);

class ArgumentKeeper {
 public:
  virtual ~ArgumentKeeper() = default;
  /// An argument of call `number` has its answer; the call may be gone. On the reactor's background
  /// thread, with no lock held.
  virtual void ArgumentHere(std::uint64_t number, const Answer& answer) = 0;
};

/// Has `keeper`, which lives until then, told of each of these answers when it is there. Any
/// thread, without the keeper's lock; never blocks.
void AwaitArguments(const std::shared_ptr<ArgumentKeeper>& keeper, std::uint64_t number,
                    std::vector<AnswerRef> answers);

}  // namespace troupe::actors
