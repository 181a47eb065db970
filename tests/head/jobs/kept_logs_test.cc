// Method: HeadCore with two nodes made of words, of which one runs a job. KL-1 of
// head/core/launched/jobs/kept_logs.h.
#include "head/core/launched/jobs/kept_logs.h"

#include "head/core/machine/job_terms.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class KeptLogs : public HeadFixture {
 protected:
  LaunchId Begin(bool is_job) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = 1;
    submit.spec.per_rank = Amounts(8);
    submit.spec.attempts_max = 2;
    submit.request = RequestId(12, ++requests_);
    if (is_job) {
      wire::EnvVar& variable = submit.spec.environment.env.emplace_back();
      variable.name = kJobTokenId;
      variable.value = TokenId(3, 4).Hex();
    }
    Say(client_, submit, requests_);
    const LaunchId launch = Last<wire::LaunchAccepted>(client_).launch;
    Grant(node_);
    return launch;
  }
  void Keep(const FakeNode& node, LaunchId launch, std::uint64_t epoch, std::uint32_t rank,
            const std::string& text) {
    Say(node.session, wire::KeepLog{launch, epoch, rank, 7}, 0, text);
  }

  void See(const Effects& effects) override {
    kept_logs_.insert(kept_logs_.end(), effects.kept_logs.begin(), effects.kept_logs.end());
    kept_log_reads_.insert(kept_log_reads_.end(), effects.kept_log_reads.begin(),
                           effects.kept_log_reads.end());
  }

  std::vector<KeptLog> kept_logs_;
  std::vector<KeptLogRead> kept_log_reads_;
  FakeNode node_ = Join(1, 8);
  FakeNode other_ = Join(2, 4);
  SessionId client_ = Open(wire::Role::kClient, Id128{9, 1});
};

TEST_F(KeptLogs, OnlyTheNodesOfJobsAreAskedForTheEndsOfLogs) {
  Begin(true);
  EXPECT_EQ(Take<wire::StartRanks>(node_.session).back().keep_log_bytes, kKeptLogBytes);
}

TEST_F(KeptLogs, ALaunchThatIsNoJobHasNone) {
  const LaunchId launch = Begin(false);
  EXPECT_EQ(Take<wire::StartRanks>(node_.session).back().keep_log_bytes, 0u);
  Keep(node_, launch, 1, 0, "text");
  EXPECT_TRUE(kept_logs_.empty());
}

TEST_F(KeptLogs, KL1_OnlyTheWorkerOfTheNodeHasTheLogOfThePresentAttemptKept) {
  const LaunchId launch = Begin(true);
  Keep(other_, launch, 1, 0, "another node's");
  Keep(node_, launch, 2, 0, "another attempt's");
  Keep(node_, launch, 1, 1, "another rank's");
  Keep(node_, launch, 1, 0, std::string(kKeptLogBytes + 1, 'x'));
  Keep(node_, LaunchId(1, 2), 1, 0, "nobody's");
  Say(client_, wire::KeepLog{launch, 1, 0, 7}, 90, "a client's");
  EXPECT_TRUE(kept_logs_.empty());
  Keep(node_, launch, 1, 0, "its own");
  ASSERT_EQ(kept_logs_.size(), 1u);
  EXPECT_EQ(kept_logs_[0].launch, launch);
  EXPECT_EQ(kept_logs_[0].offset, 7u);
  EXPECT_EQ(kept_logs_[0].text, "its own");
  Finish(node_, launch, 0);
  Keep(node_, launch, 1, 0, "its own");
  EXPECT_EQ(kept_logs_.size(), 2u) << "a worker says it again when its RankDone was not answered";
}

TEST_F(KeptLogs, WhoeverMayLookMayRead) {
  const LaunchId launch = Begin(true);
  const SessionId observer = Open(wire::Role::kObserver, Id128{9, 2});
  wire::ReadLog read;
  read.launch = launch;
  read.offset = 3;
  Say(observer, read, 5);
  ASSERT_EQ(kept_log_reads_.size(), 1u);
  EXPECT_EQ(kept_log_reads_[0].to.session, observer);
  EXPECT_EQ(kept_log_reads_[0].reply_to, 5u);
  EXPECT_EQ(kept_log_reads_[0].launch, launch);
  EXPECT_EQ(kept_log_reads_[0].offset, 3u);
  Say(node_.session, read, 6);
  Say(client_, wire::ReadLog(), 7);
  EXPECT_EQ(kept_log_reads_.size(), 1u);
  EXPECT_EQ(LastError(client_), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace troupe::head
