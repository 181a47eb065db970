// The cluster by the names, labels and units of Ray's own metrics, for boards that were made for
// them.
//
// Pure.
#pragma once

#include "head/http/exposition.h"
#include "head/http/node_metrics.h"
#include "head/http/totals.h"

namespace troupe::head {

void AddRayMetrics(Exposition& text, const Totals& totals, const MeasuresByKind& measures);

}  // namespace troupe::head
