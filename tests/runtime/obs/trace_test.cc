// The ring of this process, opened once for all tests: what is written is read from the file, as
// another process would; which calls are sampled.
#include "runtime/obs/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/os/directory.h"

namespace troupe::obs {
namespace {

constexpr int kThreads = 4;
constexpr int kSpansEach = 5000;

class TraceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EXPECT_FALSE(Tracing());
    EXPECT_EQ(SampleCall(), 0);
    AddSpan(Span{});  // without a ring nothing happens
    char name[] = "/tmp/troupe-trace-XXXXXX";
    folder_ = mkdtemp(name);
    EXPECT_FALSE(OpenTrace(folder_ + "/no/ring", "{}", 0).ok());
    EXPECT_FALSE(Tracing());
    EXPECT_TRUE(OpenTrace(folder_ + "/earlier", "{}", 0).ok());
    EXPECT_TRUE(OpenTrace(folder_ + "/ring", "{\"kind\":\"test\"}", 0).ok());
    EXPECT_FALSE(OpenTrace(folder_ + "/ring", "{}", 0).ok());  // the file is there
  }
  static void TearDownTestSuite() { os::RemoveTree(folder_); }
  static TraceHeader& Header() { return *trace_detail::header.load(); }
  static std::vector<char> File() {
    std::ifstream file(folder_ + "/ring", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string folder_;
};
std::string TraceTest::folder_;

TEST_F(TraceTest, SpansOfSeveralThreadsAreAllThereOrCounted) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      Span span;
      span.name = "a name that is longer than the place for it, which has 48 bytes";
      span.begin = TraceNow();
      span.end = TraceNow();
      for (int n = 0; n < kSpansEach; ++n) AddSpan(span);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<char> file = File();
  const std::uint64_t written = Header().next.load();
  ASSERT_EQ(written, kThreads * kSpansEach);
  std::set<std::uint64_t> numbers;
  std::set<std::uint32_t> tracks;
  for (std::uint64_t i = 0; i < written; ++i) {
    const auto* const record = reinterpret_cast<const TraceRecord*>(
        file.data() + kTraceHeaderBytes + i * sizeof(TraceRecord));
    if (record->number.load() == 0) continue;  // a dropped one
    numbers.insert(record->number.load());
    tracks.insert(record->track);
    EXPECT_LE(record->begin_ns, record->end_ns);
    EXPECT_EQ(std::string(record->name, record->name_bytes).substr(0, 13), "a name that i");
    EXPECT_EQ(record->name_bytes, kSpanNameMax);
  }
  EXPECT_EQ(numbers.size() + Header().dropped.load(), written);
  EXPECT_FALSE(tracks.empty());  // a thread's records may all have been dropped
  EXPECT_LE(tracks.size(), kThreads);
}

TEST_F(TraceTest, OneCallInSoManyIsMarkedUntilTheTimeIsOver) {
  EXPECT_EQ(SampleCall(), 0);
  Header().calls_every.store(3);
  std::vector<std::uint16_t> marks;
  for (int i = 0; i < 9; ++i) marks.push_back(SampleCall());
  EXPECT_EQ(std::count(marks.begin(), marks.end(), 0), 6);
  Header().calls_until_ns.store(1);  // long ago
  for (int i = 0; i < 3; ++i) EXPECT_EQ(SampleCall(), 0);
  EXPECT_EQ(Header().calls_every.load(), 0u) << "from now on the branch is all that a call pays";
}

TEST_F(TraceTest, ACallAndItsRunHaveTheSameFlow) {
  const std::uint64_t channel = std::uint64_t{9} << 40;
  EXPECT_EQ(FlowOf(5, channel | 77), FlowOf(5, 77));
  EXPECT_NE(FlowOf(5, 77), FlowOf(6, 77));
  EXPECT_NE(FlowOf(5, 77), FlowOf(5, 78));
}

}  // namespace
}  // namespace troupe::obs
