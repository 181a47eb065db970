#include "actors/net/process_revocations.h"

namespace troupe::actors {

net::Revocations& ProcessRevocations() {
  // connections may end after everything else
  static auto* const revocations = new net::Revocations;
  return *revocations;
}

}  // namespace troupe::actors
