// Method: real processes under a real loop; the interpreter is tests/worker/fake_python.cc.
// Everything is waited for by running the loop until an event has come, with a deadline.
#include "worker/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "runtime/async/fd_watch.h"
#include "runtime/async/real_clock.h"
#include "runtime/base/random.h"
#include "runtime/os/directory.h"
#include "runtime/os/family.h"
#include "runtime/os/process.h"
#include "runtime/os/signals.h"

namespace troupe::worker {
namespace {

class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(os::BecomeSubreaper().ok());
    char name[] = "/tmp/troupe-worker-XXXXXX";
    folder_ = mkdtemp(name);
    signals_.emplace(*os::SignalFd::Open({SIGCHLD}));
    logs_.emplace(*LogFiles::Open(folder_ + "/logs", 1u << 20));
    watch_ = std::make_unique<async::FdWatch>(context_.get_executor(), signals_->fd(), [this] {
      while (signals_->Next()) supervisor_->OnChildren();
    });
    Make({});
  }
  void Make(std::vector<std::string> environment) {
    ZygoteOptions zygote;
    zygote.python = FAKE_PYTHON;
    zygote.log_path = folder_ + "/zygote.log";
    zygote.environment = std::move(environment);
    supervisor_ =
        std::make_unique<Supervisor>(context_.get_executor(), clock_, zygote, *logs_, Events());
  }
  void TearDown() override {
    supervisor_->Stop();
    EXPECT_TRUE(Until([] { return os::Children().empty(); }));
    supervisor_.reset();
    watch_.reset();
    os::RemoveTree(folder_);
  }

  Supervisor::Events Events() {
    Supervisor::Events events;
    events.zygote = [this](bool ready, const std::string&) { zygote_ready_ = ready; };
    events.forked = [this](ProcessId, int pid, const std::string& from) {
      pid_ = pid;
      from_ = from;
    };
    events.ahead = [this](const std::vector<std::string>& each) { ahead_ = each; };
    events.failed = [this](ProcessId, const std::string& error) { failed_ = error; };
    events.message = [this](ProcessId, wire::Message message) {
      order_ += std::string(wire::NameOf(message.body)) + " ";
      if (wire::Holds<wire::RankResult>(message.body)) value_ = message.attachment;
    };
    events.exited = [this](ProcessId, ExitInfo exit) {
      order_ += "exited ";
      exit_ = exit;
    };
    events.drained = [this](ProcessId) { order_ += "drained "; };
    events.gone = [this](ProcessId) {
      order_ += "gone ";
      ++gone_;
    };
    return events;
  }
  bool Until(const std::function<bool()>& done) {
    const Instant end = clock_.Now() + std::chrono::seconds(20);
    while (!done() && clock_.Now() < end) {
      context_.restart();
      context_.run_one_for(std::chrono::milliseconds(100));
    }
    return done();
  }
  /// Returns once the node's own zygote is ready, and the only child: the light one has ended.
  void StartZygoteAlone() {
    supervisor_->StartZygote();
    ASSERT_TRUE(Until([&] { return zygote_ready_ && os::Children().size() == 1; }));
  }
  ProcessId Start(const std::string& script, bool execute = false, const std::string& title = "",
                  bool may_exec = false, const std::string& program = "") {
    StartProcess effect;
    effect.program = program;
    effect.may_exec = may_exec;
    effect.request.process = ProcessId::Random(random_);
    effect.request.title = title;
    wire::EnvVar mark;
    mark.name = "TROUPE_PROCESS_ID";
    mark.value = effect.request.process.Hex();
    effect.request.env = {mark};
    effect.fresh_interpreter = execute;
    effect.has_begin = true;
    effect.begin.body = wire::RankBegin();
    effect.begin.attachment = script;
    effect.log = LogPlace{"launch/epoch-1", "rank-0"};
    const ProcessId id = effect.request.process;
    supervisor_->Start(std::move(effect));
    return id;
  }

  boost::asio::io_context context_{1};
  async::RealClock clock_;
  Prng random_{3};
  std::string folder_;
  std::optional<os::SignalFd> signals_;
  std::optional<LogFiles> logs_;
  std::unique_ptr<async::FdWatch> watch_;
  std::unique_ptr<Supervisor> supervisor_;
  bool zygote_ready_ = false;
  int pid_ = 0;
  int gone_ = 0;
  std::string failed_, value_, order_, from_;
  std::vector<std::string> ahead_;
  ExitInfo exit_;
};

TEST_F(SupervisorTest, W1_ForkedProcessIsSeenToItsEndInOrder) {
  supervisor_->StartZygote();
  Start("print error value");  // before the zygote is ready: it waits
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(value_, "the value");
  EXPECT_EQ(exit_.exit_code, 0);
  EXPECT_EQ(exit_.log_tail, "Traceback: boom\n");
  EXPECT_EQ(logs_->Read("launch/epoch-1/rank-0.out", 0, 0)->text, "hello\n");
  EXPECT_LT(order_.find("RankResult"), order_.find("gone"));
  EXPECT_NE(order_.find("drained"), std::string::npos);
}

TEST_F(SupervisorTest, AProgramIsExecutedWhateverZygotesThereAre) {
  supervisor_->StartZygote();
  ASSERT_TRUE(Until([&] { return zygote_ready_; }));
  const std::string program = folder_ + "/program";
  std::ofstream(program) << "#!/bin/sh\necho control at $TROUPE_CONTROL_FD\nexit 5\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  Start("", false, "", false, program);
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 5);
  EXPECT_EQ(from_, "executing " + program);
  EXPECT_EQ(logs_->Read("launch/epoch-1/rank-0.out", 0, 0)->text, "control at 3\n");
  Start("", false, "", false, folder_ + "/nowhere");
  ASSERT_TRUE(Until([&] { return !failed_.empty(); }));
  EXPECT_NE(failed_.find(folder_ + "/nowhere"), std::string::npos) << failed_;
}

TEST_F(SupervisorTest, WhatNeedNotWaitIsForkedByALightZygoteUntilTheNodesOwnIsReady) {
  const std::string imports = folder_ + "/imports";
  Make({"FAKE_IMPORTS=" + imports});
  supervisor_->StartZygote();
  for (int tries = 1; tries == 1 || !from_.empty(); ++tries) {  // executed until one is ready
    ASSERT_LE(tries, 1000) << from_;
    Start("print error value", false, "", true);
    ASSERT_TRUE(Until([&] { return gone_ == tries; })) << order_;
  }
  EXPECT_FALSE(zygote_ready_);
  EXPECT_EQ(os::Children().size(), 2U) << "both zygotes";
  std::ofstream(imports).close();
  ASSERT_TRUE(Until([&] { return zygote_ready_; }));
  ASSERT_TRUE(Until([] { return os::Children().size() == 1; })) << "the light one has ended";
  const int before = gone_;
  Start("print error value", false, "", true);
  ASSERT_TRUE(Until([&] { return gone_ == before + 1; })) << order_;
  EXPECT_EQ(from_, "");
}

TEST_F(SupervisorTest, ExecutedProcessBehavesAlike) {
  Start("print exit3", true);
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 3);
  EXPECT_GT(exit_.peak_rss_kib, 0u);
}

TEST_F(SupervisorTest, W5_NobodyIsLeftWhenTheNodeEnds) {
  supervisor_->StartZygote();
  Start("orphan stubborn");
  Start("wait", true);
  ASSERT_TRUE(Until([&] { return order_ == "RankPrepared RankPrepared "; })) << order_;
  supervisor_->Stop();
  supervisor_->AwaitEnd(*signals_, std::chrono::seconds(20));
  EXPECT_TRUE(os::Children().empty());
}

TEST_F(SupervisorTest, ASignalIsNamed) {
  supervisor_->StartZygote();
  Start("abort");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.signal, SIGABRT);
}

TEST_F(SupervisorTest, W5_GrandchildrenInTheirOwnSessionEndToo) {
  for (const bool execute : {false, true}) {
    SCOPED_TRACE(execute);
    if (!execute) StartZygoteAlone();
    gone_ = 0;
    Start("orphan orphan", execute);
    ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
    EXPECT_EQ(os::Children().size(), 1u) << "only the zygote is left";
  }
}

TEST_F(SupervisorTest, ProcessEndIsHeardAndAStubbornProcessIsKilled) {
  supervisor_->StartZygote();
  const ProcessId polite = Start("wait");
  ASSERT_TRUE(Until([&] { return pid_ != 0; }));
  wire::ProcessEnd end;
  end.exit_code = 7;
  wire::Message message;
  message.body = end;
  supervisor_->Send(polite, message);
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 7);
  pid_ = 0;
  const ProcessId stubborn = Start("stubborn");
  ASSERT_TRUE(Until([&] { return pid_ != 0; }));
  supervisor_->Signal(stubborn, SIGKILL);
  ASSERT_TRUE(Until([&] { return gone_ == 2; })) << order_;
  EXPECT_EQ(exit_.signal, SIGKILL);
}

TEST_F(SupervisorTest, AZygoteThatDiesIsReplacedAndWhatItForkedLivesOn) {
  supervisor_->StartZygote();
  const ProcessId before = Start("wait");
  ASSERT_TRUE(Until([&] { return order_ == "RankPrepared "; })) << order_;
  const int pid = pid_;
  Start("exit3", false, "zygote dies once " + folder_ + "/died");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 3) << "the next zygote was asked for it";
  EXPECT_EQ(failed_, "");
  EXPECT_EQ(kill(pid, 0), 0);
  wire::Message message;
  wire::ProcessEnd end;
  end.exit_code = 7;
  message.body = end;
  supervisor_->Send(before, message);
  ASSERT_TRUE(Until([&] { return gone_ == 2; })) << order_;
  EXPECT_EQ(exit_.exit_code, 7);
}

TEST_F(SupervisorTest, AStartThatTwoZygotesDiedOfIsExecuted) {
  supervisor_->StartZygote();
  Start("exit3", false, "zygote dies");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 3);
  EXPECT_EQ(failed_, "");
  Start("exit3");
  ASSERT_TRUE(Until([&] { return gone_ == 2; })) << order_;
}

TEST_F(SupervisorTest, AStartThatWasAnsweredWithAProcessThatIsNoMoreIsAskedForAgain) {
  supervisor_->StartZygote();
  Start("exit3", false, "names a dead child once " + folder_ + "/named");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 3);
  EXPECT_EQ(failed_, "");
}

TEST_F(SupervisorTest, AStartWhoseZygoteDiedBeforeGivingItIsAskedForAgain) {
  supervisor_->StartZygote();
  Start("print value exit3", false, "dies before giving once " + folder_ + "/died");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 3);
  EXPECT_EQ(value_, "the value");
  EXPECT_EQ(failed_, "");
  EXPECT_EQ(order_.find("drained"), order_.rfind("drained")) << order_;
}

TEST_F(SupervisorTest, AStartThatNoZygoteGivesIsExecuted) {
  for (const char* title : {"dies before giving", "gives nothing"}) {
    SCOPED_TRACE(title);
    supervisor_->StartZygote();
    gone_ = 0;
    order_.clear();
    Start("exit3", false, title);
    ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
    EXPECT_EQ(exit_.exit_code, 3);
    EXPECT_EQ(failed_, "");
  }
}

TEST_F(SupervisorTest, AStartThatMeetsAZygoteThatIsGoneIsForkedByTheNext) {
  StartZygoteAlone();
  Start("exit3");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  const std::vector<int> zygote = os::Children();
  ASSERT_EQ(zygote.size(), 1u);
  kill(zygote[0], SIGKILL);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zygote[0]), &ended, WEXITED | WNOWAIT), 0);
  Start("exit3");  // nobody has heard of that end yet
  ASSERT_TRUE(Until([&] { return gone_ == 2; })) << failed_;
  EXPECT_EQ(exit_.exit_code, 3);
  EXPECT_EQ(failed_, "");
}

TEST_F(SupervisorTest, WhatEndsByThatCodeOfItselfIsNotStartedAgain) {
  supervisor_->StartZygote();
  Start("exit79");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(exit_.exit_code, 79);
  EXPECT_EQ(order_.find("RankPrepared"), order_.rfind("RankPrepared")) << order_;
}

TEST_F(SupervisorTest, W5_WhatIsParkedIsNoOrphanAndEndsWithItsZygote) {
  StartZygoteAlone();
  Start("orphan exit3", false, "parks one");
  ASSERT_TRUE(Until([&] { return gone_ == 1; })) << order_;
  EXPECT_EQ(os::Children().size(), 2u) << "the zygote and what it has parked";
  Start("exit3", false, "zygote dies");
  ASSERT_TRUE(Until([&] { return gone_ == 2 && os::Children().size() == 1; }))
      << "another zygote is left";
}

TEST_F(SupervisorTest, AStartThatStillWaitsCanBeTakenBack) {
  const ProcessId id = Start("print");  // no zygote was started
  supervisor_->Signal(id, SIGKILL);
  EXPECT_EQ(failed_, "it was cancelled before it started");
  EXPECT_TRUE(supervisor_->idle());
}

}  // namespace
}  // namespace troupe::worker
