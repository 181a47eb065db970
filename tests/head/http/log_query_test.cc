// Method: what a request for a log asks for, with values: parameters, the node and file of a log,
// positions, characters that a piece cuts.
#include "head/http/logs/log_query.h"

#include <gtest/gtest.h>

namespace troupe::head {
namespace {

unsigned StatusOfQuery(RouteId route, std::string name, std::string value) {
  HttpRequest request;
  request.query[std::move(name)] = std::move(value);
  const LogQueryOrRefusal read = ReadLogQuery(route, request);
  return read.refusal ? read.refusal->status : 200;
}

TEST(LogQuery, TakesWhatALogOfItsKindHasAndRefusesTheRest) {
  for (const RouteId route : {RouteId::kLaunchLog, RouteId::kJobLog, RouteId::kActorLog}) {
    const bool is_job = route == RouteId::kJobLog;
    EXPECT_EQ(StatusOfQuery(route, "offset", "18446744073709551615"), 200u);
    EXPECT_EQ(StatusOfQuery(route, "offset", "18446744073709551616"), 400u);
    EXPECT_EQ(StatusOfQuery(route, "limit", "1048576"), 200u);
    EXPECT_EQ(StatusOfQuery(route, "limit", "1048577"), 400u);
    EXPECT_EQ(StatusOfQuery(route, "limit", "1x"), 400u);
    EXPECT_EQ(StatusOfQuery(route, "follow", "1"), 200u);
    EXPECT_EQ(StatusOfQuery(route, "follow", ""), 400u);
    EXPECT_EQ(StatusOfQuery(route, "stream", "stderr"), is_job ? 400u : 200u);
    EXPECT_EQ(StatusOfQuery(route, "rank", "7"), route == RouteId::kLaunchLog ? 200u : 400u);
    EXPECT_EQ(StatusOfQuery(route, "rank", "4294967295"), 400u);
    EXPECT_EQ(StatusOfQuery(route, "path", "/etc/passwd"), 400u);
  }
  EXPECT_TRUE(ReadLogQuery(RouteId::kJobLog, HttpRequest()).query.stderr_asked);
  EXPECT_FALSE(ReadLogQuery(RouteId::kActorLog, HttpRequest()).query.stderr_asked);
}

LaunchRow OnTwoNodes() {
  LaunchRow row;
  row.info.launch = LaunchId(1, 2);
  row.info.ranks = 2;
  row.info.epoch = 3;
  row.info.state = wire::LaunchState::kRunning;
  row.info.rank_infos.resize(2);
  row.info.rank_infos[0].node = NodeId(5, 0);
  row.info.rank_infos[1].rank = 1;
  row.info.rank_infos[1].node = NodeId(5, 1);
  row.info.rank_infos[1].node_name = "b";
  return row;
}

TEST(LogQuery, FindsTheNodeAndAttemptOfARank) {
  LaunchRow row = OnTwoNodes();
  LogQuery query;
  query.rank = 1;
  const StatusOr<LogSource> source = SourceOf(row, false, query);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->node, NodeId(5, 1));
  EXPECT_EQ(source->node_name, "b");
  EXPECT_EQ(source->target.rank, 1);
  EXPECT_EQ(source->target.epoch, 3u);
  EXPECT_FALSE(source->is_over || source->is_starting);
  query.rank = 2;
  EXPECT_EQ(ErrorCodeOf(SourceOf(row, false, query).status()), ErrorCode::kNotFound);
  row.info.epoch = 0;
  query.rank = 0;
  EXPECT_TRUE(SourceOf(row, false, query)->node.IsNil()) << "no attempt has begun";
}

TEST(LogQuery, FindsTheNodeOfAnActorThatDied) {
  ActorRow row;
  row.info.actor = ActorId(1, 1);
  row.info.state = wire::ActorState::kDead;
  row.info.failure.node = NodeId(5, 0);
  row.info.failure.node_name = "a";
  const LogSource source = SourceOf(row, LogQuery());
  EXPECT_EQ(source.node, NodeId(5, 0));
  EXPECT_EQ(source.node_name, "a");
  EXPECT_TRUE(source.is_over);
}

TEST(LogQuery, PositionsAreReadAsTheyAreWritten) {
  EXPECT_EQ(FormatPosition({2, 4711}), "2-4711");
  EXPECT_EQ(ReadPosition("2-4711")->attempt, 2u);
  EXPECT_EQ(ReadPosition("2-4711")->offset, 4711u);
  for (const char* none : {"", "2", "-", "2-", "-1", "2-1-1", "2-x", " 2-1", "2-+1"})
    EXPECT_FALSE(ReadPosition(none)) << none;
}

TEST(LogQuery, ACharacterThatIsNotWholeIsCounted) {
  const std::string euro = "\xE2\x82\xAC", face = "\xF0\x9F\x98\x80";
  EXPECT_EQ(UnfinishedBytes(""), 0u);
  EXPECT_EQ(UnfinishedBytes("a" + euro + face), 0u);
  EXPECT_EQ(UnfinishedBytes("a" + euro.substr(0, 1)), 1u);
  EXPECT_EQ(UnfinishedBytes("a" + euro.substr(0, 2)), 2u);
  EXPECT_EQ(UnfinishedBytes("a" + face.substr(0, 3)), 3u);
  EXPECT_EQ(UnfinishedBytes(face.substr(0, 1)), 1u);
  EXPECT_EQ(UnfinishedBytes("a\x80\x80\x80\x80"), 0u) << "what begins none is none";
  EXPECT_EQ(UnfinishedBytes("\xFF"), 1u) << "it is told with what follows";
}

}  // namespace
}  // namespace troupe::head
