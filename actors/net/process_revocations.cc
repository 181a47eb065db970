#include "actors/net/process_revocations.h"

namespace troupe::actors {

net::Revocations& ProcessRevocations() {
  static auto* const revocations = new net::Revocations;  // connections may end after everything else
  return *revocations;
}

}  // namespace troupe::actors
