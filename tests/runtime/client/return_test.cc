// Method: a head of one coroutine per connection listens, is destroyed with all of its connections
// while a client's request is under way, and another one listens in its place: what was not
// answered is asked again there by the same client, what may not be repeated is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/async/loop_thread.h"
#include "runtime/client/control_client.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::client {
namespace {

namespace asio = async::asio;
using async::Task;
using net::Connection;
using wire::Message;
using namespace std::chrono_literals;

// The requests to heads, over all of their lives.
class Heard {
 public:
  void Add(const std::string& kind, const Id128& subject) {
    const std::lock_guard lock(mutex_);
    kinds_.push_back(kind);
    subjects_.insert(subject);
    changed_.notify_all();
  }
  bool WaitFor(const std::string& kind, std::size_t times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return Count(kind) >= times; });
  }
  std::size_t Times(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    return Count(kind);
  }
  std::size_t clients() {
    const std::lock_guard lock(mutex_);
    return subjects_.size();
  }

 private:
  std::size_t Count(const std::string& kind) const {
    return static_cast<std::size_t>(std::count(kinds_.begin(), kinds_.end(), kind));
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> kinds_;
  std::set<Id128> subjects_;
};

/// A of a head; `answers`: whether it answers at all.
class Head {
 public:
  Head(net::TestCluster& cluster, Heard& heard, net::Address address, bool answers)
      : cluster_(cluster), heard_(heard), answers_(answers) {
    std::promise<net::Address> bound;
    asio::post(loop_.executor(), [&] {
      scope_ = std::make_unique<async::Scope>(loop_.executor(), "head");
      net::ListenOptions options;
      options.address = address;
      options.tls = cluster_.Server();
      listener_ = *net::Listener::Open(loop_.executor(), std::move(options));
      listener_->Start([this](std::shared_ptr<Connection> connection) {
        scope_->Spawn("serve", Serve(this, std::move(connection)));
      });
      bound.set_value(listener_->address());
    });
    address_ = bound.get_future().get();
  }
  ~Head() {
    std::promise<void> closed;
    asio::post(loop_.executor(), [&] {
      listener_.reset();
      for (const auto& connection : open_)
        connection->Close(MakeError(ErrorCode::kConnection, "killed"));
      scope_->Cancel();
      closed.set_value();
    });
    closed.get_future().wait();
    loop_.Stop();
  }
  const net::Address& address() const { return address_; }
  void SayGoodbye() {
    asio::post(loop_.executor(), [this] {
      Message message;
      wire::Goodbye goodbye;
      goodbye.reason = "the cluster was stopped";
      message.body = goodbye;
      for (const auto& connection : open_) {
        static_cast<void>(connection->Send(message));
        scope_->Spawn("finish", connection->Finish(10s));
      }
    });
  }

 private:
  static Task<void> Serve(Head* self, std::shared_ptr<Connection> connection) {
    const auto admitted = co_await net::Authenticate(connection, self->cluster_.rules,
                                                     self->cluster_.clock, self->cluster_.random);
    if (!admitted.ok()) co_return;
    self->open_.push_back(connection);
    for (;;) {
      StatusOr<Message> question = co_await connection->Receive();
      if (!question.ok()) co_return;
      self->heard_.Add(std::string(wire::NameOf(question->body)), admitted->subject);
      if (!self->answers_) continue;
      Message answer;
      answer.reply_to = question->id;
      answer.body = wire::Ok();
      answer.attachment = question->attachment;
      if (!connection->Send(answer).ok()) co_return;
    }
  }

  net::TestCluster& cluster_;
  Heard& heard_;
  const bool answers_;
  async::LoopThread loop_{"head"};
  std::unique_ptr<async::Scope> scope_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::shared_ptr<Connection>> open_;
  net::Address address_;
};

class ReturnTest : public ::testing::Test {
 protected:
  net::Address Unix() const { return *net::UnixAddress(folder_.path() + "/s"); }
  void StartHead(net::Address address, bool answers) {
    head_.emplace(cluster_, heard_, std::move(address), answers);
  }
  void StartClient(net::OpenOptions options, Duration limit = 60s) {
    options.hello.role = wire::Role::kClient;
    auto client = ControlClient::Connect(std::move(options), {}, limit);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  std::future<StatusOr<Message>> Ask(wire::Body body, std::string attachment = {}) {
    Message message;
    message.body = std::move(body);
    message.attachment = std::move(attachment);
    return std::async(std::launch::async,
                      [this, message] { return client_->Request(message, std::nullopt); });
  }
  void TearDown() override {
    client_.reset();
    head_.reset();
  }

  net::TempFolder folder_;
  net::TestCluster cluster_;
  Heard heard_;
  std::optional<Head> head_;
  std::shared_ptr<ControlClient> client_;
};

TEST_F(ReturnTest, WhatWasNotAnsweredIsAskedAgainByTheSameClient) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()));
  auto answer = Ask(wire::GetStatus(), "bytes");
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 1));
  head_.reset();
  StartHead(Unix(), true);
  const StatusOr<Message> got = answer.get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->attachment, "bytes");
  EXPECT_EQ(heard_.Times("GetStatus"), 2u);
  EXPECT_EQ(heard_.clients(), 1u);
}

TEST_F(ReturnTest, WhatNobodyWaitsForIsAskedAgainToo) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()));
  Message message;
  message.body = wire::GetStatus();
  const auto asked = client_->Ask(message);
  message.body = wire::CreateToken();
  const auto once = client_->Ask(message);
  ASSERT_TRUE(asked.ok() && *asked && once.ok() && *once);
  ASSERT_TRUE(heard_.WaitFor("CreateToken", 1));
  head_.reset();
  StartHead(Unix(), true);
  std::optional<client::Push> refusal;  // beside it the loss and the return are told
  while (!refusal) {
    auto push = client_->NextPush(60s);
    ASSERT_TRUE(push.ok() && *push);
    if ((*push)->asked != nullptr) refusal = *std::move(*push);
  }
  EXPECT_TRUE(wire::Holds<wire::CreateToken>(refusal->asked->body));
  EXPECT_EQ(wire::Get<wire::ErrorReply>(refusal->body).code,
            static_cast<std::uint16_t>(ErrorCode::kUnknownOutcome));
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 2));
  EXPECT_EQ(heard_.Times("GetStatus"), 2u);
  EXPECT_EQ(heard_.Times("CreateToken"), 1u);
}

TEST_F(ReturnTest, OverTlsTheCertificateProvesTheSameClient) {
  StartHead(*net::TcpAddress("127.0.0.1", 0), false);
  const net::Address address = head_->address();
  net::OpenOptions options(address);
  options.token = cluster_.NewToken(wire::Role::kClient);
  options.key = net::PrivateKey::Generate();
  StartClient(std::move(options));
  auto answer = Ask(wire::ListActors());
  ASSERT_TRUE(heard_.WaitFor("ListActors", 1));
  head_.reset();
  // the token was for one use: nothing but the certificate is left
  cluster_.rules.find_token = nullptr;
  StartHead(address, true);
  const StatusOr<Message> got = answer.get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(heard_.clients(), 1u);
}

TEST_F(ReturnTest, WhatMayNotBeRepeatedEndsAsUnknown) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()));
  auto token = Ask(wire::CreateToken());
  ASSERT_TRUE(heard_.WaitFor("CreateToken", 1));
  head_.reset();
  EXPECT_EQ(ErrorCodeOf(token.get().status()), ErrorCode::kUnknownOutcome);
  StartHead(Unix(), true);
  EXPECT_TRUE(Ask(wire::GetStatus()).get().ok());
  EXPECT_EQ(heard_.Times("CreateToken"), 1u);
}

TEST_F(ReturnTest, AWriteIsNamedOnceAndRepeatedByThatName) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()));
  wire::KvPut put;
  put.key = "k";
  put.overwrite = false;
  auto answer = Ask(put, "v");
  ASSERT_TRUE(heard_.WaitFor("KvPut", 1));
  head_.reset();
  StartHead(Unix(), true);
  EXPECT_TRUE(answer.get().ok());
}

TEST_F(ReturnTest, PushesTellOfTheLossAndTheReturn) {
  StartHead(Unix(), true);
  StartClient(net::OpenOptions(Unix()));
  head_.reset();
  const auto lost = client_->NextPush(30s);
  ASSERT_TRUE(lost.ok() && lost->has_value());
  EXPECT_TRUE(wire::Holds<wire::ErrorReply>((*lost)->body));
  StartHead(Unix(), true);
  const auto back = client_->NextPush(30s);
  ASSERT_TRUE(back.ok() && back->has_value());
  const auto* welcome = wire::GetIf<wire::Welcome>(&(*back)->body);
  ASSERT_NE(welcome, nullptr);
  EXPECT_EQ(welcome->subject, client_->joined().welcome.subject);
}

TEST_F(ReturnTest, TheLimitIsNamed) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()), 200ms);
  auto answer = Ask(wire::GetStatus());
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 1));
  head_.reset();
  const Status status = answer.get().status();
  EXPECT_EQ(ErrorCodeOf(status), ErrorCode::kConnection);
  EXPECT_NE(MessageOf(status).find("within 0.2 s, counted from its loss"), std::string::npos)
      << status;
  EXPECT_NE(MessageOf(status).find("nobody listens on"), std::string::npos) << status;
}

TEST_F(ReturnTest, AnotherClusterAtTheAddressIsNotJoined) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()), 1h);
  auto answer = Ask(wire::GetStatus());
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 1));
  head_.reset();
  net::TestCluster other;
  head_.emplace(other, heard_, Unix(), true);
  const Status status = answer.get().status();
  EXPECT_NE(MessageOf(status).find("it belongs to cluster"), std::string::npos) << status;
  EXPECT_EQ(heard_.Times("GetStatus"), 1u);
  head_.reset();
}

TEST_F(ReturnTest, AfterAGoodbyeNobodyIsDialled) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()), 1h);
  auto answer = Ask(wire::GetStatus());
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 1));
  head_->SayGoodbye();
  const Status status = answer.get().status();
  EXPECT_NE(MessageOf(status).find("the cluster was stopped"), std::string::npos) << status;
}

TEST_F(ReturnTest, ClosingEndsTheSearch) {
  StartHead(Unix(), false);
  StartClient(net::OpenOptions(Unix()), 1h);
  auto answer = Ask(wire::GetStatus());
  ASSERT_TRUE(heard_.WaitFor("GetStatus", 1));
  head_.reset();
  client_->Close();
  EXPECT_EQ(ErrorCodeOf(answer.get().status()), ErrorCode::kConnection);
}

}  // namespace
}  // namespace troupe::client
