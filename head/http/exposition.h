// Text of metrics for Prometheus: its own format 0.0.4, or OpenMetrics 1.0.
//
//   Exposition text(Exposition::Format::kOpenMetrics);
//   text.Begin("troupe_nodes", Exposition::Kind::kGauge, "Nodes by state.");
//   text.Add({{"state", "alive"}}, 3);
//   std::string body = text.Finish();
//
// A value; pure. Names of counters end in `_total`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "head/http/histogram.h"

namespace troupe::head {

class Exposition {
 public:
  enum class Format : std::uint8_t { kPrometheus, kOpenMetrics };
  enum class Kind : std::uint8_t { kGauge, kCounter, kHistogram, kUnknown };
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  explicit Exposition(Format format) : format_(format) {}

  /// Begins a family; what is added next belongs to it.
  void Begin(std::string_view name, Kind kind, std::string_view help);
  void Add(const Labels& labels, double value);
  void Add(const Labels& labels, const Histogram& histogram);
  /// A histogram with bounds of its own: `counts` of each bucket alone, the last of them +Inf.
  void Add(const Labels& labels, const std::vector<double>& bounds,
           const std::vector<std::uint64_t>& counts, double sum);
  std::string Finish();

  /// The Content-Type of a format.
  static std::string TypeOf(Format format);
  /// The format that an Accept header asks for.
  static Format FormatFor(std::string_view accept);

 private:
  template <class Bounds, class Counts>
  void Buckets(const Labels& labels, const Bounds& bounds, const Counts& counts, double sum);
  void Line(std::string_view suffix, const Labels& labels, double value);

  const Format format_;
  std::string name_;
  std::string text_;
};
using FamilyKind = Exposition::Kind;

}  // namespace troupe::head
