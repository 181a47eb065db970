// Method: the parts of the HTTP server that decide, each with values: routes, rates, the text of
// metrics, the counting in slices.
#include <gtest/gtest.h>

#include "head/http/exposition.h"
#include "head/http/message.h"
#include "head/http/rate_limit.h"
#include "head/http/routes.h"
#include "head/http/streams.h"
#include "head/http/totals.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

TEST(HttpRoutes, AreOpenOrForThoseWhomTheRoleTableLets) {
  for (const HttpRoute& route : Routes()) {
    const bool open = route.path == "/healthz" || route.path == "/readyz";
    EXPECT_EQ(!route.kind, open) << route.path;
    EXPECT_EQ(MayAsk(route, wire::Role::kNone), open) << route.path;
    EXPECT_EQ(MayAsk(route, wire::Role::kWorker), open) << route.path;
    EXPECT_EQ(MayAsk(route, wire::Role::kProcess), open) << route.path;
    EXPECT_TRUE(MayAsk(route, wire::Role::kClient)) << route.path;
    EXPECT_EQ(MayAsk(route, wire::Role::kObserver), route.method == "GET") << route.path;
  }
}

TEST(HttpRoutes, AreFoundByOnePathSegment) {
  EXPECT_EQ(FindRoute("GET", "/api/v1/nodes").id, "");
  EXPECT_EQ(FindRoute("HEAD", "/api/v1/nodes/ab").id, "ab");
  for (const char* path :
       {"/", "", "/api/v1/nodes/", "/api/v1/nodes/a/b", "/api/v1", "/metrics/"}) {
    EXPECT_EQ(FindRoute("GET", path).route, nullptr) << path;
  }
  EXPECT_EQ(FindRoute("POST", "/metrics").allow, "GET, HEAD");
  EXPECT_EQ(FindRoute("POST", "/api/v1/jobs/ab/stop").id, "ab");
  EXPECT_EQ(FindRoute("GET", "/api/v1/jobs/ab/stop").allow, "POST");
  EXPECT_EQ(FindRoute("PUT", "/api/v1/jobs").allow, "GET, HEAD, POST");
  for (const char* path : {"/api/v1/jobs//stop", "/api/v1/jobs/stop", "/api/v1/jobs/a/b/stop"})
    EXPECT_EQ(FindRoute("POST", path).route, nullptr) << path;
}

TEST(HttpMessage, ValidUtf8KeepsCharactersAndReplacesBytesThatAreNone) {
  const std::string good = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(ValidUtf8(good), good);
  const std::string none = "\xEF\xBF\xBD";
  EXPECT_EQ(ValidUtf8("a\xFFz"), "a" + none + "z");
  EXPECT_EQ(ValidUtf8("\xE2\x82"), none + none);
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), none + none) << "overlong";
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80x"), none + none + none + "x") << "a surrogate";
}

TEST(HttpRateLimit, RL1_EmptiesAndFillsAgain) {
  RateLimit limit(10, 2);
  Instant now{1h};
  EXPECT_TRUE(limit.Take("a", now) && limit.Take("a", now));
  EXPECT_FALSE(limit.Take("a", now));
  EXPECT_TRUE(limit.Take("b", now));
  now += 100ms;
  EXPECT_TRUE(limit.Take("a", now));
  EXPECT_FALSE(limit.Take("a", now));
}

TEST(HttpRateLimit, RL2_ForgetsWhoAskedLongestAgo) {
  RateLimit limit(0.001, 1);
  const Instant now{1h};
  EXPECT_TRUE(limit.Take("first", now));
  for (std::size_t i = 1; i < RateLimit::kCallersMax; ++i)
    EXPECT_TRUE(limit.Take(std::to_string(i), now));
  EXPECT_FALSE(limit.Take("first", now)) << "still known, and now the latest";
  EXPECT_TRUE(limit.Take("another", now)) << "in the place of 1";
  EXPECT_FALSE(limit.Take("first", now));
  EXPECT_TRUE(limit.Take("1", now));
}

std::deque<wire::ClusterEvent> Numbered(std::uint64_t first, std::uint64_t last) {
  std::deque<wire::ClusterEvent> events;
  for (; first <= last; ++first) {
    events.emplace_back();
    events.back().number = first;
  }
  return events;
}

std::size_t CountOf(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(HttpStreams, ST2_GoOnWhereTheyWereAndSayWhatIsLost) {
  Changes now;
  now.incarnation = 3;
  StreamPlace place;
  EXPECT_EQ(BeginAt("", now, Numbered(1, 9), &place), "");
  EXPECT_EQ(NewsFor(&place, now, Numbered(1, 9)), "") << "with what comes from now on";
  EXPECT_EQ(CountOf(NewsFor(&place, now, Numbered(1, 11)), "event: event\n"), 2u);
  EXPECT_EQ(place.number, 11u);
  EXPECT_EQ(BeginAt("3-4", now, Numbered(1, 9), &place), "");
  EXPECT_EQ(CountOf(NewsFor(&place, now, Numbered(1, 9)), "event: event\n"), 5u);
  EXPECT_EQ(BeginAt("3-4", now, Numbered(8, 9), &place), "");
  const std::string late = NewsFor(&place, now, Numbered(8, 9));
  EXPECT_EQ(late.find("event: lost\ndata: {\"events\":3}\n\n"), 0u) << late;
  EXPECT_EQ(CountOf(late, "event: event\n"), 2u);
  EXPECT_EQ(BeginAt("3-99", now, Numbered(8, 9), &place), "");
  EXPECT_EQ(NewsFor(&place, now, Numbered(8, 9)), "");
  for (const char* other : {"2-9", "x", "3", "3-", "3-1x", "-1-1"}) {
    EXPECT_NE(BeginAt(other, now, Numbered(8, 9), &place), "") << other;
    EXPECT_EQ(CountOf(NewsFor(&place, now, Numbered(8, 9)), "event: event\n"), 2u) << other;
  }
}

TEST(HttpStreams, NameTheListsThatChanged) {
  Changes now;
  StreamPlace place;
  ++now.versions[static_cast<std::size_t>(ChangedList::kTokens)];
  EXPECT_EQ(NewsFor(&place, now, {}), "");
  now.versions[static_cast<std::size_t>(ChangedList::kNodes)] += 5;
  ++now.versions[static_cast<std::size_t>(ChangedList::kActors)];
  EXPECT_EQ(NewsFor(&place, now, {}),
            "event: changed\ndata: {\"lists\":[\"nodes\",\"actors\"]}\n\n");
  EXPECT_EQ(NewsFor(&place, now, {}), "");
}

class HttpChangeFeed : public HeadFixture {};

TEST_F(HttpChangeFeed, WakesOnceUntilItIsAskedAndNeverWithoutStreams) {
  int woken = 0;
  ChangeFeed feed(*core_, [&] { ++woken; });
  std::vector<Row> rows(1);
  rows[0].event.body = wire::ActorCreated();
  feed.OnStep(rows, false);
  EXPECT_EQ(woken, 0) << "nobody looks";
  feed.SetWatched(true);
  for (int i = 0; i < 3; ++i) feed.OnStep(rows, false);
  EXPECT_EQ(woken, 1);
  const Changes first = feed.Collect(0);
  const auto actors = static_cast<std::size_t>(ChangedList::kActors);
  EXPECT_EQ(first.versions[actors], 3u);
  EXPECT_FALSE(first.events.empty()) << "the head's start";
  EXPECT_TRUE(feed.Collect(first.events.back().number).events.empty());
  rows[0].event.body = wire::ValueWritten();
  feed.OnStep(rows, false);
  EXPECT_EQ(woken, 1) << "no list has changed";
  feed.OnStep({}, true);
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(feed.Collect(0).versions, feed.Collect(0).versions);
}

class HttpTotals : public HeadFixture {};

TEST_F(HttpTotals, AreTheSameInSlices) {
  const SessionId client = Open(wire::Role::kClient, NodeId(1, 1));
  constexpr std::uint64_t kActors = 2 * kRowsPerSlice + 1;
  for (std::uint64_t i = 0; i < kActors; ++i) {
    wire::CreateActor create;
    create.spec.actor = ActorId(9, i + 1);
    create.spec.class_name = "A";
    create.spec.infeasible_waits = true;
    Say(client, create);
  }
  Totals totals;
  CountCursor cursor;
  int slices = 1;
  Turn turn = core_->TurnToLook(now_, WallUs());
  for (; !CountSome(turn, &cursor, &totals); ++slices) ASSERT_LT(slices, 20);
  EXPECT_GE(slices, 3);
  EXPECT_EQ(totals.actors[wire::ActorState::kPending], core_->state().actors.size());
  EXPECT_EQ(totals.actors[wire::ActorState::kPending], kActors);
  EXPECT_EQ(totals.incarnation, core_->state().incarnation);
}

TEST(Exposition, EscapesLabelsAndEndsAsItsFormatAsks) {
  for (const auto format : {Exposition::Format::kPrometheus, Exposition::Format::kOpenMetrics}) {
    Exposition text(format);
    text.Begin("a_total", Exposition::Kind::kCounter, "Help.");
    text.Add({{"x", "a\"b\\c\nd"}}, 1.5);
    const bool open = format == Exposition::Format::kOpenMetrics;
    const std::string family = open ? "a" : "a_total";
    EXPECT_EQ(text.Finish(), "# HELP " + family + " Help.\n# TYPE " + family +
                                 " counter\na_total{x=\"a\\\"b\\\\c\\nd\"} 1.5\n" +
                                 (open ? "# EOF\n" : ""));
  }
  Histogram histogram;
  for (const auto length : {10us, 100us, 300us}) histogram.Add(length);
  histogram.Add(1h);
  Exposition text(Exposition::Format::kPrometheus);
  text.Add({}, histogram);
  const std::string body = text.Finish();
  EXPECT_NE(body.find("_bucket{le=\"0.0001\"} 2\n"), std::string::npos) << body;
  EXPECT_NE(body.find("_bucket{le=\"600\"} 3\n"), std::string::npos) << body;
  EXPECT_NE(body.find("_bucket{le=\"+Inf\"} 4\n"), std::string::npos) << body;
  EXPECT_NE(body.find("_count 4\n"), std::string::npos) << body;
}

}  // namespace
}  // namespace troupe::head
