// Operations on the encoded arguments that a TaskPool or a PendingCalls keeps, implemented by the
// encoder (bindings).
//
// Called on any thread, with the keeper's lock held and without the GIL; takes no lock but the
// object store's, and does not block.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "actors/objects/object_handles.h"
#include "actors/slots/answer.h"

namespace troupe::actors {

/// An argument whose value is to come: where among the encoded ones it belongs, and its answer.
struct ArgumentToCome {
  std::size_t at = 0;
  AnswerRef answer;
};

class ArgumentCodec {
 public:
  virtual ~ArgumentCodec() = default;
  /// Appends the value that an answer holds, and to `held` a handle of each object that it names.
  /// One in memory is named from so many bytes on, and copied below. False: the answer holds no
  /// value.
  virtual bool AppendAnswer(const Answer& answer, std::size_t named_from, std::string* values,
                            Handles* held) const = 0;
  /// `count` arguments as they go to another host: small ones by their bytes, as far as a frame has
  /// room, others, and the references inside, by the names that are known between hosts. `*named`:
  /// some are. Nothing: they are no values.
  virtual std::optional<std::string> ForRemote(std::string_view values, int count,
                                               bool* named) const = 0;
};

}  // namespace troupe::actors
