#include "actors/objects/result_hold.h"

namespace troupe::actors {

void Conclude(Completions& completions, Answer* slot, std::uint16_t flags, std::string_view body,
              ResultThen& then) {
  if (then.fills_only) {
    slot->Fill(flags, body);
  } else {
    completions.Complete(slot, flags, body);
  }
  if (then.run != nullptr) completions.Post(std::move(then.run));
}

}  // namespace troupe::actors
