// The completion marker: durable, epoch-fenced, write-once (spec: completion-marker, S1-S9).
//
//   OPEN(e) --AcquireDriver: DriverAcquired journaled--> OPEN(e), leased
//   leased --Complete(e) / RankDone of all--> TERMINAL      leased --lease over--> epoch fails
//   OPEN --Cancel, timeout, caller gone, attempts used--> TERMINAL (absorbing)
// Durable before visible (S5): nothing that this code sends leaves before the journal's answer. A
// driver is leased by its worker, which sees its exit; one that renews is held to its own lease
// too.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// The contents of a marker.
struct Verdict {
  wire::Outcome outcome = wire::Outcome::kNone;
  std::int32_t exit_code = 0;
  std::string cause;  // empty: the failure's
  wire::Failure failure;
  RequestId request;
  std::string manifest;
  std::string value;  // the driver's
};

/// The launch must be open (S6).
void WriteMarker(Turn& turn, Launch& launch, Verdict verdict);

}  // namespace troupe::head
