// Method: rounds of made-up processes; what they come to, and why some are refused.
#include "head/core/machine/program_metrics.h"

#include <gtest/gtest.h>

namespace troupe::head {
namespace {

using namespace std::chrono_literals;
using wire::MetricKind;

wire::ReportMetrics Round(std::uint64_t source, std::uint64_t round) {
  wire::ReportMetrics report;
  report.source = RequestId(1, source);
  report.round = round;
  return report;
}

wire::MetricFamily& Add(wire::ReportMetrics& report, const std::string& name, MetricKind kind,
                        double value, const std::string& tag = "x") {
  wire::MetricFamily family;
  family.name = name;
  family.kind = kind;
  wire::MetricSeries series;
  series.labels = {{"tag", tag}};
  series.value = value;
  if (kind == MetricKind::kHistogram) {
    family.bounds = {1, 2};
    series.counts = {1, 0, 2};
  }
  family.series.push_back(series);
  report.families.push_back(family);
  return report.families.back();
}

double ValueOf(const ProgramMetrics& metrics, const std::string& name,
               const std::string& tag = "x") {
  return metrics.families().at(name).series.at({{"tag", tag}}).value;
}

TEST(ProgramMetrics, PM1_CountARoundOnce) {
  ProgramMetrics metrics;
  const Instant now{1h};
  wire::ReportMetrics first = Round(1, 1);
  Add(first, "done", MetricKind::kCounter, 3);
  Add(first, "took", MetricKind::kHistogram, 9);
  Add(first, "depth", MetricKind::kGauge, 5);
  EXPECT_TRUE(metrics.Take(first, now).empty());
  EXPECT_TRUE(metrics.Take(first, now).empty());
  wire::ReportMetrics other = Round(2, 1);
  Add(other, "done", MetricKind::kCounter, 4);
  Add(other, "took", MetricKind::kHistogram, 1);
  Add(other, "depth", MetricKind::kGauge, 6);
  EXPECT_TRUE(metrics.Take(other, now).empty());
  EXPECT_EQ(ValueOf(metrics, "done"), 7) << "together";
  EXPECT_EQ(ValueOf(metrics, "depth"), 6) << "the value that was set last";
  const auto& took = metrics.families().at("took").series.at({{"tag", "x"}});
  EXPECT_EQ(took.counts, (std::vector<std::uint64_t>{2, 0, 4}));
  EXPECT_EQ(took.value, 10);
}

TEST(ProgramMetrics, PM2_RefuseWhatIsBeyondTheirNumber) {
  ProgramMetrics metrics;
  const Instant now{1h};
  for (std::uint64_t round = 1; metrics.series() < ProgramMetrics::kSeriesMax; ++round) {
    wire::ReportMetrics report = Round(1, round);
    wire::MetricFamily& family = Add(report, "done", MetricKind::kCounter, 1);
    family.series.clear();
    for (std::size_t i = 0; i < ProgramMetrics::kSeriesPerReportMax; ++i) {
      family.series.push_back({{{"tag", std::to_string(round) + "." + std::to_string(i)}}, 1, {}});
    }
    ASSERT_TRUE(metrics.Take(report, now).empty());
  }
  wire::ReportMetrics more = Round(2, 1);
  Add(more, "done", MetricKind::kCounter, 1, "new");
  Add(more, "done", MetricKind::kCounter, 1, "1.0");
  const std::vector<std::string> refused = metrics.Take(more, now);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("20000 series"), std::string::npos) << refused[0];
  EXPECT_EQ(ValueOf(metrics, "done", "1.0"), 2) << "series that there are go on";
  wire::ReportMetrics large = Round(2, 2);
  wire::MetricFamily& family = Add(large, "done", MetricKind::kCounter, 1);
  family.series.resize(ProgramMetrics::kSeriesPerReportMax + 1);
  EXPECT_EQ(metrics.Take(large, now).size(), 1u);
}

TEST(ProgramMetrics, PM3_ForgetGaugesThatNobodyReports) {
  ProgramMetrics metrics;
  Instant now{1h};
  wire::ReportMetrics report = Round(1, 1);
  Add(report, "depth", MetricKind::kGauge, 5);
  Add(report, "done", MetricKind::kCounter, 5);
  metrics.Take(report, now);
  now += ProgramMetrics::kGaugeLife + 1s;
  metrics.Expire(now);
  EXPECT_TRUE(metrics.families().at("depth").series.empty());
  EXPECT_EQ(ValueOf(metrics, "done"), 5);
  EXPECT_EQ(metrics.series(), 1u);
}

TEST(ProgramMetrics, PM4_HaveNoNameOfASampleInCommon) {
  ProgramMetrics metrics;
  const Instant now{1h};
  std::uint64_t round = 0;
  const auto refused = [&](const std::string& name, MetricKind kind) {
    wire::ReportMetrics report = Round(1, ++round);
    Add(report, name, kind, 1);
    const std::vector<std::string> why = metrics.Take(report, now);
    return why.empty() ? std::string() : why.front();
  };
  EXPECT_EQ(refused("took", MetricKind::kHistogram), "");
  EXPECT_NE(refused("took", MetricKind::kGauge).find("is a histogram already"), std::string::npos);
  EXPECT_NE(refused("took_count", MetricKind::kGauge).find("a sample"), std::string::npos);
  EXPECT_EQ(refused("done_total", MetricKind::kCounter), "");
  EXPECT_NE(refused("done", MetricKind::kCounter), "");
  EXPECT_NE(refused("troupe_nodes", MetricKind::kGauge).find("the runtime's own"),
            std::string::npos);
  EXPECT_EQ(refused("troupe_sweep_trials", MetricKind::kGauge), "");
  for (const char* name : {"", "1x", "a-b", "a b", "\xFF"}) {
    EXPECT_NE(refused(name, MetricKind::kGauge), "") << name;
  }
  EXPECT_EQ(metrics.families().size(), 3u);
}

TEST(ProgramMetrics, RefuseLabelsAndBoundsThatAreNone) {
  ProgramMetrics metrics;
  const Instant now{1h};
  std::uint64_t round = 0;
  const auto takes = [&](auto change) {
    wire::ReportMetrics report = Round(1, ++round);
    wire::MetricFamily& family = Add(report, "took", MetricKind::kHistogram, 1);
    change(family);
    return metrics.Take(report, now).empty();
  };
  using Family = wire::MetricFamily;
  EXPECT_TRUE(takes([](Family&) {}));
  EXPECT_FALSE(takes([](Family& each) { each.bounds = {}; }));
  EXPECT_FALSE(takes([](Family& each) { each.bounds = {2, 1}; }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].counts.pop_back(); }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].labels[0].key = "le"; }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].labels[0].key = "__a"; }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].labels.push_back({"tag", "y"}); }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].labels[0].value.assign(1025, 'x'); }));
  EXPECT_FALSE(takes([](Family& each) { each.series[0].labels.resize(33); }));
  EXPECT_EQ(metrics.series(), 1u);
}

}  // namespace
}  // namespace troupe::head
