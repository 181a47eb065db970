#include "runtime/wire/repeat.h"

#include <variant>

namespace troupe::wire {

bool Repeatable(const Body& body) {
  if (const auto* put = std::get_if<KvPut>(&body)) return !put->request.IsNil();
  if (const auto* erase = std::get_if<KvDelete>(&body)) return !erase->request.IsNil();
  if (const auto* submit = std::get_if<SubmitLaunch>(&body)) return !submit->request.IsNil();
  // A second kill would meet the actor that was made in place of the first.
  if (const auto* kill = std::get_if<KillActor>(&body)) return kill->no_restart;
  return !std::holds_alternative<CreateToken>(body) && !std::holds_alternative<StopCluster>(body);
}

void NameRequest(Body& body, Random& random) {
  if (auto* put = std::get_if<KvPut>(&body)) {
    if (put->request.IsNil()) put->request = RequestId::Random(random);
  } else if (auto* erase = std::get_if<KvDelete>(&body)) {
    if (erase->request.IsNil()) erase->request = RequestId::Random(random);
  }
}

}  // namespace troupe::wire
