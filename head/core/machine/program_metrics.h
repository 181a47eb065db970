// Metrics of programs: what their processes have counted together, for /metrics.
//
//   PM-1  A round of a source is counted once, however often it comes.
//   PM-2  At most kSeriesMax series of kFamiliesMax names; what goes beyond is refused in words.
//   PM-3  A gauge that nobody reports for kGaugeLife is forgotten. Counters and histograms stay:
//         what a process counted is not lost with it.
//   PM-4  No two families have a sample's name in common, whatever the format.
//
// A value; pure. Kept in memory alone: after a restart of the head everything begins at 0, as
// Prometheus expects of a counter's process.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

class ProgramMetrics {
 public:
  static constexpr std::size_t kFamiliesMax = 1000;
  static constexpr std::size_t kSeriesMax = 20'000;
  static constexpr std::size_t kSeriesPerReportMax = 1000;
  static constexpr std::size_t kSourcesMax = 10'000;
  static constexpr std::size_t kLabelsMax = 32;
  static constexpr std::size_t kBoundsMax = 128;
  static constexpr std::size_t kTextMax = 1024;  // bytes
  static constexpr Duration kGaugeLife = std::chrono::seconds(60);

  using Labels = std::vector<std::pair<std::string, std::string>>;
  struct Series {
    double value = 0;  // a histogram's sum
    std::vector<std::uint64_t> counts;
    Instant reported{};
  };
  struct Family {
    wire::MetricKind kind = wire::MetricKind::kCounter;
    std::string help;
    std::vector<double> bounds;
    std::map<Labels, Series> series;
  };
  using Families = std::map<std::string, Family>;

  /// Takes a round; returns why some of it was not taken, for people.
  std::vector<std::string> Take(const wire::ReportMetrics& report, Instant now);
  /// Forgets gauges that nobody reports any more.
  void Expire(Instant now);

  const Families& families() const { return families_; }
  std::size_t series() const { return series_; }

 private:
  bool IsRepeat(const RequestId& source, std::uint64_t round);
  std::string TakeFamily(const wire::MetricFamily& reported, Instant now);
  std::string FindFamily(const wire::MetricFamily& reported, Family** family);

  Families families_;
  std::set<std::string> names_;  // names that samples of a family may have
  std::size_t series_ = 0;
  std::map<RequestId, std::uint64_t> rounds_;  // the latest that was taken
  std::deque<RequestId> sources_;              // the oldest first
  Instant expired_{};
};

}  // namespace troupe::head
