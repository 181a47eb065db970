// Method: ProcessIdentity over a ControlClient on a socketpair; a coroutine with an authority answers for
// the head, with certificates of a chosen age, or refuses.
#include "runtime/client/process_identity.h"

#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "runtime/async/loop_thread.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::client {
namespace {

namespace asio = async::asio;
using async::Task;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const ActorId kActor(3, 4);
constexpr std::uint64_t kHourUs = 3600ull * 1'000'000;

class Identity : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const int theirs = ends[1];
    asio::post(server_.executor(), [this, theirs] {
      scope_ = std::make_unique<async::Scope>(server_.executor(), "server");
      auto connection = *net::AdoptUnixSocket(server_.executor(), UniqueFd(theirs), "the process");
      scope_->Spawn("serve", Serve(this, std::move(connection)));
    });
    control_ = *ControlClient::Adopt(UniqueFd(ends[0]), "the worker");
  }
  void TearDown() override {
    control_.reset();
    server_.Stop();
  }
  static Task<void> Serve(Identity* self, std::shared_ptr<net::Connection> connection) {
    for (;;) {
      StatusOr<wire::Message> question = co_await connection->Receive();
      if (!question.ok()) co_return;
      const wire::Message answer = self->Answer(*question);
      if (!connection->Send(answer).ok()) co_return;
    }
  }
  wire::Message Answer(const wire::Message& question) {
    ++asked_;
    wire::Message answer;
    answer.reply_to = question.id;
    if (refuse_) {
      wire::ErrorReply error;
      error.code = static_cast<std::uint16_t>(ErrorCode::kJoinRefused);
      error.text = "no such actor here";
      answer.body = error;
      return answer;
    }
    const auto& ask = std::get<wire::CertifyProcess>(question.body);
    const std::uint64_t issued = cluster_.clock.WallTimeUs() - age_hours_ * kHourUs;
    wire::ProcessCertificate given;
    given.certificate = *cluster_.authority.Issue(ask.request, wire::Role::kProcess, kActor, issued);
    given.ca_certificate = cluster_.authority.certificate().Pem();
    answer.body = given;
    return answer;
  }

  net::TestCluster cluster_;
  std::atomic<int> asked_{0};
  std::atomic<bool> refuse_{false};
  std::atomic<std::uint64_t> age_hours_{0};
  async::LoopThread server_{"server"};
  std::unique_ptr<async::Scope> scope_;
  std::shared_ptr<ControlClient> control_;
};

TEST_F(Identity, NothingIsAskedBeforeItIsNeededAndOnceForMany) {
  ProcessIdentity identity(control_);
  EXPECT_EQ(asked_, 0);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto shown = identity.Get();
      if (shown.ok() && (*shown)->credentials.certificate.identity()->id == kActor) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(asked_, 1);
}

TEST_F(Identity, WhatJoiningBroughtServesWithoutAsking) {
  ProcessIdentity identity(control_, cluster_.Issue(wire::Role::kClient));
  ASSERT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 0);
}

TEST_F(Identity, ARefusalIsToldAndTheNextNeedAsksAgain) {
  refuse_ = true;
  ProcessIdentity identity(control_);
  EXPECT_THAT(MessageOf(identity.Get().status()), HasSubstr("no such actor here"));
  refuse_ = false;
  EXPECT_TRUE(identity.Get().ok());
}

TEST_F(Identity, AtTwoThirdsOfItsLifeANewOneIsShownWithAnotherKey) {
  age_hours_ = 20;
  ProcessIdentity identity(control_);
  const auto old = identity.Get();
  ASSERT_TRUE(old.ok()) << old.status();
  age_hours_ = 0;
  const auto renewed = identity.Get();
  ASSERT_TRUE(renewed.ok());
  EXPECT_EQ(asked_, 2);
  EXPECT_NE((*old)->credentials.certificate.KeyHash(), (*renewed)->credentials.certificate.KeyHash());
  ASSERT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 2);
}

TEST_F(Identity, TheOldOneServesWhileRenewalFails) {
  age_hours_ = 20;
  ProcessIdentity identity(control_);
  ASSERT_TRUE(identity.Get().ok());
  refuse_ = true;
  EXPECT_TRUE(identity.Get().ok());
  EXPECT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 2) << "not at every use";
}

TEST_F(Identity, WithoutItsChannelThereIsNone) {
  control_->Close();
  ProcessIdentity identity(control_);
  EXPECT_THAT(MessageOf(identity.Get().status()), HasSubstr("no certificate"));
}

}  // namespace
}  // namespace troupe::client
