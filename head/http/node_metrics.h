// Metrics of nodes and their GPUs, by our names and by those of NVIDIA's DCGM exporter.
//
// Pure. The names of all measures stand in one table (node_metrics.cc);
// docs/reference/metrics.md has them for people.
#pragma once

#include <string>
#include <vector>

#include "head/http/exposition.h"
#include "head/http/totals.h"

namespace troupe::head {

inline constexpr double kBytesPerMib = 1 << 20;

/// A figure and its node.
struct NodeMeasure {
  const NodeFigures* node = nullptr;
  const wire::Measure* measure = nullptr;
};
/// All figures of all nodes, by their kind.
using MeasuresByKind = std::vector<std::vector<NodeMeasure>>;
MeasuresByKind SortMeasures(const Totals& totals);

/// The device that a figure is about; null: the node does not know it.
const wire::Device* DeviceOf(const NodeMeasure& measure);

void AddNodeMetrics(Exposition& text, const Totals& totals, const MeasuresByKind& measures);
/// As dcgm-exporter names them, in its units: %, MiB, W, mJ, MHz.
void AddDcgmMetrics(Exposition& text, const MeasuresByKind& measures);

}  // namespace troupe::head
