// Method: a service under a real loop, over log files that the test writes; readers of several at
// once, told when there is more.
#include "worker/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <optional>
#include <set>

#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/os/directory.h"

namespace troupe::worker {
namespace {

const ActorId kOne(1, 1);
const ActorId kTwo(1, 2);
constexpr std::uint64_t kAsker = 7;

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-service-XXXXXX";
    folder_ = mkdtemp(name);
    logs_.emplace(*LogFiles::Open(folder_ + "/logs", 1u << 20));
    blobs_ = *BlobStore::Open(folder_ + "/blobs", 1u << 20);
    watch_ = *LogWatch::Open(context_.get_executor());
    scope_.emplace(context_.get_executor(), "test");
    service_ = std::make_unique<Service>(
        clock_, *blobs_, *logs_, *watch_,
        [this](const std::string& file) { return writing_.count(file) > 0; }, Service::Readings());
  }
  void TearDown() override {
    scope_->Cancel();
    Run();
    service_.reset();
    watch_.reset();
    os::RemoveTree(folder_);
  }
  /// Runs handlers that are ready, or become so within 50 ms; all of them, however late this thread
  /// gets a processor.
  void Run() {
    context_.restart();
    context_.run_for(std::chrono::milliseconds(50));
    do context_.restart();
    while (context_.poll() > 0);
  }
  static async::Task<void> Store(ServiceTest* test, wire::Message request) {
    test->answer_ = co_await test->service_->Answer(kAsker, std::move(request));
    ++test->answers_;
  }
  void Ask(wire::ReadLogs read) {
    wire::Message request;
    request.id = 5;
    request.body = std::move(read);
    scope_->Spawn("ask", Store(this, std::move(request)));
    Run();
  }
  wire::ReadLogs Both(std::uint64_t round, std::uint32_t wait_ms = 60000) const {
    wire::ReadLogs read;
    for (const ActorId& actor : {kOne, kTwo}) {
      wire::LogStream stream;
      stream.actor = actor;
      stream.offset = offsets_.count(actor) > 0 ? offsets_.at(actor) : 0;
      stream.over = over_.count(actor) > 0;
      read.streams.push_back(stream);
    }
    read.bytes_max = 4096;
    read.wait_ms = wait_ms;
    read.round = round;
    return read;
  }
  void Write(const ActorId& actor, const std::string& text) {
    const LogFiles::Pair files = *logs_->Create(LogPlace{actor.Hex(), "actor"});
    ASSERT_EQ(write(files.out.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// The text of the last answer; its readers go on behind it.
  std::string Text() {
    const auto* parts = wire::GetIf<wire::LogParts>(&answer_.body);
    EXPECT_NE(parts, nullptr);
    if (parts == nullptr) return "";
    for (const wire::LogPart& part : parts->parts)
      offsets_[part.stream == 0 ? kOne : kTwo] = part.next;
    return answer_.attachment;
  }
  std::vector<wire::LogPart> Parts() const {
    return wire::GetIf<wire::LogParts>(&answer_.body)->parts;
  }

  async::asio::io_context context_;
  async::RealClock clock_;
  std::string folder_;
  std::optional<LogFiles> logs_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<LogWatch> watch_;
  std::optional<async::Scope> scope_;
  std::unique_ptr<Service> service_;
  std::set<std::string> writing_;
  std::map<ActorId, std::uint64_t> offsets_;
  std::set<ActorId> over_;
  wire::Message answer_;
  int answers_ = 0;
};

TEST_F(ServiceTest, SeveralLogsAreWaitedForTogether) {
  Write(kOne, "");
  Write(kTwo, "");
  Ask(Both(1));
  EXPECT_EQ(answers_, 0);
  Write(kTwo, "two\n");
  Run();
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(Text(), "two\n");
  Write(kOne, "one\n");
  Write(kTwo, "more\n");
  Ask(Both(2));
  ASSERT_EQ(answers_, 2);
  EXPECT_EQ(Text(), "one\nmore\n");
  ASSERT_EQ(Parts().size(), 2u);
  EXPECT_EQ(Parts()[1].bytes, 5u);
  EXPECT_EQ(Parts()[1].next, 9u);
}

TEST_F(ServiceTest, AFileThatIsNotThereYetIsWaitedFor) {
  Ask(Both(1));
  EXPECT_EQ(answers_, 0);
  Write(kOne, "");
  watch_->WakeAbsent();
  Run();
  EXPECT_EQ(answers_, 0) << "it says nothing yet";
  Write(kOne, "first\n");
  Run();
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(Text(), "first\n");
}

TEST_F(ServiceTest, WhatIsOverEndsOnceItWasRead) {
  Write(kOne, "last words");
  writing_.insert(LogFile(LogPlace{kOne.Hex(), "actor"}, false));
  over_ = {kOne};
  Ask(Both(1));
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(Text(), "last words");
  Ask(Both(2));
  EXPECT_EQ(answers_, 1) << "its process still runs";
  writing_.clear();
  watch_->WakeAll();
  Run();
  ASSERT_EQ(answers_, 2);
  ASSERT_EQ(Parts().size(), 1u);
  EXPECT_TRUE(Parts()[0].ended);
  over_ = {kTwo};  // a process that never wrote
  Ask(Both(3));
  ASSERT_EQ(answers_, 3);
  EXPECT_EQ(Parts()[0].stream, 1u);
  EXPECT_TRUE(Parts()[0].ended);
}

TEST_F(ServiceTest, ARoundThatIsEnoughDoesNotWait) {
  Write(kOne, "");
  Ask(Both(1));
  EXPECT_EQ(answers_, 0);
  wire::ReadLogs enough;
  enough.enough = 2;
  Ask(enough);
  EXPECT_EQ(answers_, 2) << "the one that waited, and this one";
  Ask(Both(2));
  EXPECT_EQ(answers_, 3) << "said before it came";
  Ask(Both(3));
  EXPECT_EQ(answers_, 3);
  service_->Forget(kAsker);
  Run();
  EXPECT_EQ(answers_, 4) << "nobody hears it any more";
}

TEST_F(ServiceTest, AnAnswerIsNoLargerThanAsked) {
  Write(kOne, std::string(3000, 'a'));
  Write(kTwo, std::string(3000, 'b'));
  Ask(Both(1));
  EXPECT_EQ(Text().size(), 4096u);
  Ask(Both(2));
  EXPECT_EQ(Text().size(), 1904u);
  wire::ReadLogs many;
  many.streams.resize(20000);
  Ask(many);
  EXPECT_TRUE(wire::Holds<wire::ErrorReply>(answer_.body));
}

}  // namespace
}  // namespace troupe::worker
