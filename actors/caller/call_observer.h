// The observer of a channel's answers before waiting threads learn of them: it finishes their slots
// itself, or makes the calls again elsewhere (task_pool.h).
#pragma once

#include <cstdint>
#include <vector>

#include "actors/slots/answer.h"

namespace troupe::actors {

struct ObservedAnswer {
  /// The fate of a call that its process did not answer; kNo: it did.
  enum class Lost : std::uint8_t { kNo, kNotSent, kMaybeExecuted };

  AnswerRef slot;  // filled, not finished
  Lost lost;
};

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// In the order of arrival; no lock of the channel is held. `as_leader`: see CallReactor::Notify.
  virtual void Answered(std::uint64_t channel_id, std::vector<ObservedAnswer> answers,
                        bool as_leader) = 0;
};

}  // namespace troupe::actors
