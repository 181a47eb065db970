// The head's metrics: names, labels and help, as docs/reference/metrics.md lists them.
#pragma once

#include <map>
#include <string>

#include "head/http/exposition.h"
#include "head/http/totals.h"
#include "runtime/base/status.h"

namespace troupe::head {

/// The parts of the metrics that are asked for.
struct MetricsQuery {
  bool nodes = true;  // figures of nodes and metrics of programs, not only of the head
  bool dcgm = false;  // GPUs by NVIDIA's names, too
  bool ray = false;   // the cluster by Ray's names, too
};
/// Reads `?scope=head|cluster&names=dcgm,ray`. kInvalid: there is no such parameter or value.
StatusOr<MetricsQuery> ReadMetricsQuery(const std::map<std::string, std::string>& parameters);

/// The text of /metrics. Reads this process's own figures from /proc, and the size of the journal
/// in `journal_folder`.
std::string FormatMetrics(const Totals& totals, Exposition::Format format,
                          const MetricsQuery& query = {}, const std::string& journal_folder = {});

}  // namespace troupe::head
