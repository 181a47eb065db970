#include "runtime/wire/repeat.h"

#include <variant>

namespace troupe::wire {

bool Repeatable(const Body& body) {
  if (const auto* put = GetIf<KvPut>(&body)) return !put->request.IsNil();
  if (const auto* erase = GetIf<KvDelete>(&body)) return !erase->request.IsNil();
  if (const auto* submit = GetIf<SubmitLaunch>(&body)) return !submit->request.IsNil();
  // A second kill would meet the actor that was made in place of the first.
  if (const auto* kill = GetIf<KillActor>(&body)) return kill->no_restart;
  return !Holds<CreateToken>(body) && !Holds<StopCluster>(body);
}

void NameRequest(Body& body, Random& random) {
  if (auto* put = GetIf<KvPut>(&body)) {
    if (put->request.IsNil()) put->request = RequestId::Random(random);
  } else if (auto* erase = GetIf<KvDelete>(&body)) {
    if (erase->request.IsNil()) erase->request = RequestId::Random(random);
  }
}

}  // namespace troupe::wire
