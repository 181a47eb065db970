// The head's metrics: names, labels and help, as docs/http.md lists them.
#pragma once

#include <string>

#include "head/http/exposition.h"
#include "head/http/totals.h"

namespace troupe::head {

/// The text of /metrics. Reads this process's own figures from /proc.
std::string FormatMetrics(const Totals& totals, Exposition::Format format);

}  // namespace troupe::head
