// Method: made-up totals as text: of nodes and GPUs, by our names, NVIDIA's and Ray's; counts from
// what the reducer writes down.
#include <gtest/gtest.h>

#include <memory>

#include "head/http/metrics.h"
#include "head/http/tally.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;
using wire::MeasureKind;

Totals OneNode() {
  Totals totals;
  totals.cluster = "c0ffee";
  NodeFigures node;
  node.id = NodeId(1, 2);
  node.name = "a\"b";
  node.host = "10.0.0.1";
  node.machine = "gpu-host";
  wire::Device device;
  device.index = 1;
  device.uuid = "GPU-1";
  device.model = "H100";
  node.devices = {device};
  wire::NodeMeasures measures;
  measures.measures = {{MeasureKind::kCpuRatio, "", -1, 0.25},
                       {MeasureKind::kNetworkSentBytes, "eth0", -1, 700},
                       {MeasureKind::kComponentCpuSeconds, "rank", -1, 12},
                       {MeasureKind::kGpuUtilizationRatio, "", 1, 0.5},
                       {MeasureKind::kGpuMemoryUsedBytes, "", 1, 1 << 20},
                       {MeasureKind::kGpuMemoryTotalBytes, "", 1, 3 << 20},
                       {MeasureKind::kGpuEnergyJoules, "", 1, 2},
                       {MeasureKind::kGpuXidErrors, "79", 1, 2}};
  wire::NodeMeasures before;
  before.measures = {{MeasureKind::kComponentCpuSeconds, "rank", -1, 10}};
  node.measures = std::make_shared<const wire::NodeMeasures>(measures);
  node.before = std::make_shared<const wire::NodeMeasures>(before);
  node.apart_s = 4;
  totals.node_figures.push_back(node);
  totals.gpu_owners[{node.id, 1}] = {"alice", LaunchId(0, 9)};
  totals.resources["GPU"] = {40'000, 10'000, 0, 10'000};
  return totals;
}

std::string TextFor(const MetricsQuery& query) {
  return FormatMetrics(OneNode(), Exposition::Format::kPrometheus, query);
}

#define EXPECT_LINE(text, line) \
  EXPECT_NE((text).find(std::string("\n") + (line) + "\n"), std::string::npos) << (text)

TEST(MetricsText, TellsOfNodesAndGpus) {
  const std::string text = TextFor({});
  const std::string gpu = "node=\"a\\\"b\",gpu=\"1\",uuid=\"GPU-1\",model=\"H100\"";
  EXPECT_LINE(text, "troupe_node_cpu_ratio{node=\"a\\\"b\"} 0.25");
  EXPECT_LINE(text,
              "troupe_node_network_bytes_total{node=\"a\\\"b\",device=\"eth0\","
              "direction=\"sent\"} 700");
  EXPECT_LINE(text, "troupe_gpu_utilization_ratio{" + gpu + "} 0.5");
  EXPECT_LINE(text, "troupe_gpu_xid_errors_total{" + gpu + ",xid=\"79\"} 2");
  EXPECT_LINE(text, "troupe_gpu_owner_info{" + gpu + ",owner=\"alice\",launch=\"" +
                        LaunchId(0, 9).Hex() + "\"} 1");
  EXPECT_LINE(text, "troupe_resources{resource=\"GPU\",state=\"used\"} 2");
  EXPECT_LINE(text, "troupe_resources{resource=\"GPU\",state=\"reserved\"} 1");
  EXPECT_EQ(text.find("DCGM_"), std::string::npos);
  EXPECT_EQ(text.find("ray_"), std::string::npos);
  MetricsQuery head;
  head.nodes = false;
  EXPECT_EQ(TextFor(head).find("troupe_node_cpu_ratio"), std::string::npos);
}

TEST(MetricsText, HasNvidiasNamesAndRaysInTheirUnits) {
  MetricsQuery query;
  query.dcgm = query.ray = true;
  const std::string text = TextFor(query);
  const std::string dcgm =
      "{gpu=\"1\",UUID=\"GPU-1\",device=\"nvidia1\",modelName=\"H100\","
      "Hostname=\"gpu-host\"} ";
  EXPECT_LINE(text, "DCGM_FI_DEV_GPU_UTIL" + dcgm + "50");
  EXPECT_LINE(text, "DCGM_FI_DEV_FB_USED" + dcgm + "1");
  EXPECT_LINE(text, "DCGM_FI_DEV_FB_FREE" + dcgm + "2");
  EXPECT_LINE(text, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + dcgm + "2000");
  const std::string at = "ip=\"10.0.0.1\",node=\"a\\\"b\"", end = ",SessionName=\"c0ffee\"} ";
  EXPECT_LINE(text, "ray_node_cpu_utilization{" + at + end + "25");
  EXPECT_LINE(text,
              "ray_node_gram_used{" + at + ",GpuIndex=\"1\",GpuDeviceName=\"H100\"" + end + "1");
  EXPECT_LINE(text, "ray_component_cpu_percentage{" + at + ",Component=\"rank\"" + end + "50");
  EXPECT_LINE(text, "ray_resources{Name=\"GPU\",State=\"USED\"" + end + "3");
}

TEST(MetricsQuery, IsReadOrRefused) {
  EXPECT_TRUE(ReadMetricsQuery({})->nodes);
  EXPECT_FALSE(ReadMetricsQuery({{"scope", "head"}})->nodes);
  EXPECT_TRUE(ReadMetricsQuery({{"names", "dcgm,ray"}})->ray);
  EXPECT_FALSE(ReadMetricsQuery({{"names", "ray"}})->dcgm);
  using Parameters = std::map<std::string, std::string>;
  for (const Parameters& wrong : {Parameters{{"scope", "x"}}, Parameters{{"names", ""}},
                                  Parameters{{"names", "dcgm,x"}}, Parameters{{"name", "dcgm"}}}) {
    EXPECT_FALSE(ReadMetricsQuery(wrong).ok()) << wrong.begin()->first << wrong.begin()->second;
  }
}

Row RowOf(wire::EventBody body) {
  Row row;
  row.event.body = std::move(body);
  return row;
}

TEST(Tally, CountsEndsRestartsAndLosses) {
  State state;
  Tally tally;
  wire::RankFinished finished, killed;
  finished.done.outcome = wire::Outcome::kSucceeded;
  killed.done.outcome = wire::Outcome::kFailed;
  killed.done.failure.kind = wire::FailureKind::kOutOfMemory;
  wire::ActorDied died;
  died.failure.kind = wire::FailureKind::kPreempted;
  died.restart = true;
  wire::EpochFailed failed;
  failed.preempted = true;
  wire::RosterPublished ready;
  ready.ready_ms = 40;
  wire::NodeDied ended, silent, left;
  ended.ended = true;
  left.node = NodeId(1, 1);
  state.nodes[left.node].draining = true;
  wire::EpochBegun second;
  second.epoch = 2;
  second.launch = LaunchId(1, 1);
  state.launches[second.launch].last_failure.kind = wire::FailureKind::kNodeLost;
  tally.OnStep({RowOf(finished), RowOf(killed), RowOf(died), RowOf(failed), RowOf(ready),
                RowOf(ended), RowOf(silent), RowOf(left), RowOf(second)},
               state);
  const ClusterCounts& counts = tally.counts();
  using Counts = CountsByCause;
  EXPECT_EQ(counts.process_exits, (Counts{{{"rank", "finished"}, 1},
                                          {{"rank", "out_of_memory"}, 1},
                                          {{"actor", "preempted"}, 1}}));
  EXPECT_EQ(counts.restarts, (Counts{{{"actor", "preempted"}, 1}, {{"launch", "node_lost"}, 1}}));
  EXPECT_EQ(counts.preemptions, (Counts{{{"actor", "priority"}, 1}, {{"launch", "priority"}, 1}}));
  EXPECT_EQ(counts.nodes_lost,
            (Counts{{{"node", "ended"}, 1}, {{"node", "silent"}, 1}, {{"node", "left"}, 1}}));
  EXPECT_EQ(counts.launch_ready.sum_s(), 0.04);
}

TEST_F(HeadFixture, ProgramMetricsAreCopiedInSlices) {
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  constexpr std::size_t kSeries = 1200;
  std::uint64_t id = 0;
  for (std::size_t from = 0; from < kSeries; from += 400) {
    wire::ReportMetrics report;
    report.source = RequestId(1, 1);
    report.round = ++id;
    for (const char* name : {"a", "b"}) {
      wire::MetricFamily family;
      family.name = name;
      for (std::size_t i = from; i < from + 400; ++i)
        family.series.push_back({{{"tag", std::to_string(i)}}, 1, {}});
      report.families.push_back(std::move(family));
    }
    Say(client, report, id);
  }
  CountCursor cursor;
  Totals totals;
  Turn turn = core_->TurnToLook(now_, WallUs());
  int slices = 1;
  while (!CountSome(turn, &cursor, &totals)) ++slices;
  EXPECT_GE(slices, 4);
  ASSERT_EQ(totals.programs.size(), 2u);
  EXPECT_EQ(totals.programs["a"].series.size(), kSeries);
  EXPECT_EQ(totals.programs["b"].series.size(), kSeries);
}

}  // namespace
}  // namespace troupe::head
