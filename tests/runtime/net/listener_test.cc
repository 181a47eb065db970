// Method: listeners on loopback and in temporary folders, dialled by the project's dialer and by
// raw sockets; what the errors say is read as their user would.
#include "runtime/net/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "runtime/async/loop_thread.h"
#include "runtime/net/bind.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

using async::Task;
using namespace std::chrono_literals;

class ListenerTest : public ::testing::Test {
 protected:
  ListenOptions Options(Address address) {
    ListenOptions options;
    options.address = std::move(address);
    options.tls = cluster_.Server();
    return options;
  }
  Address Start(ListenOptions options) {
    listener_ = *Listener::Open(loop_.context.get_executor(), std::move(options));
    listener_->Start([this](std::shared_ptr<Connection> connection) {
      arrived_.push_back(std::move(connection));
    });
    return listener_->address();
  }
  StatusOr<std::shared_ptr<Connection>> DialTo(const Address& address, Duration limit = 5s,
                                               std::string server_name = "") {
    DialOptions dial(address);
    dial.tls = cluster_.Pinned();
    dial.limit = limit;
    dial.expected.server_name = std::move(server_name);
    return loop_.Run(Dial(std::move(dial)));
  }
  void RunUntil(const std::function<bool()>& done) {
    loop_.context.restart();
    while (!done() && loop_.context.run_one_for(10s) > 0) {
    }
    ASSERT_TRUE(done());
  }

  TempFolder folder_;
  TestCluster cluster_;
  TestLoop loop_;
  std::vector<std::shared_ptr<Connection>> arrived_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ListenerTest, PortZeroTakesAFreePortAndConnectionsArrive) {
  const Address address = Start(Options(*TcpAddress("127.0.0.1", 0)));
  EXPECT_NE(address.port, 0);
  ASSERT_TRUE(DialTo(address).ok());
  RunUntil([this] { return arrived_.size() == 1; });
  EXPECT_EQ(arrived_[0]->peer().host, "127.0.0.1");
  EXPECT_FALSE(arrived_[0]->peer().local);
  EXPECT_EQ(arrived_[0]->peer().exporter.size(), 32u);
}

TEST_F(ListenerTest, HandshakesMayRunOnAnotherThread) {
  async::LoopThread handshakes("handshakes");
  ListenOptions options = Options(*TcpAddress("127.0.0.1", 0));
  options.handshakes = handshakes.executor();
  const Address address = Start(std::move(options));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(DialTo(address).ok());
  RunUntil([this] { return arrived_.size() == 5; });
  listener_.reset();
}

TEST_F(ListenerTest, APortThatIsTakenNamesTheHolderAndTheRemedy) {
  const Address address = Start(Options(*TcpAddress("127.0.0.1", 0)));
  const auto second = Listener::Open(loop_.context.get_executor(), Options(address));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCodeOf(second.status()), ErrorCode::kAlreadyExists);
  const std::string text = MessageOf(second.status());
  const std::string port = std::to_string(address.port);
  EXPECT_EQ(text.find("port " + port + " on 127.0.0.1 is taken by process " +
                      std::to_string(getpid()) + " ("),
            0u)
      << text;
  EXPECT_NE(text.find("--port 0"), std::string::npos);
}

TEST_F(ListenerTest, ATcpListenerWithoutTlsDoesNotExist) {
  ListenOptions options = Options(*TcpAddress("127.0.0.1", 0));
  options.tls = nullptr;
  EXPECT_FALSE(Listener::Open(loop_.context.get_executor(), std::move(options)).ok());
}

TEST_F(ListenerTest, AUnixSocketIsPrivateAndGoneAfterwards) {
  const std::string path = folder_.path() + "/sub/head.sock";
  const Address address = Start(Options(*UnixAddress(path)));
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((folder_.path() + "/sub").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(DialTo(address).ok());
  RunUntil([this] { return arrived_.size() == 1; });
  EXPECT_TRUE(arrived_[0]->peer().local);
  EXPECT_EQ(arrived_[0]->peer().uid, geteuid());
  EXPECT_EQ(arrived_[0]->peer().pid, getpid());
  listener_.reset();
  EXPECT_NE(stat(path.c_str(), &info), 0);
}

TEST_F(ListenerTest, ASocketLeftOverByADeadProcessIsReplacedALiveOneIsNot) {
  const Address address = *UnixAddress(folder_.path() + "/head.sock");
  {
    const Bound left_over = *BindUnix(address);
  }  // closed without unlink, as after kill -9
  Start(Options(address));
  ASSERT_TRUE(DialTo(address).ok());
  const auto second = Listener::Open(loop_.context.get_executor(), Options(address));
  EXPECT_EQ(ErrorCodeOf(second.status()), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(DialTo(address).ok()) << "the first one must not be harmed";
}

TEST_F(ListenerTest, AFileInTheWayIsNotRemoved) {
  const std::string path = folder_.path() + "/file";
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_FALSE(Listener::Open(loop_.context.get_executor(), Options(*UnixAddress(path))).ok());
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
}

TEST_F(ListenerTest, AServerNameIsHandedOverRawBeforeTheHandshakeIsAnswered) {
  const std::string actor = ActorId(7, 8).Hex();
  std::string name;
  UniqueFd handed;
  ListenOptions options = Options(*TcpAddress("127.0.0.1", 0));
  options.on_named = [&](std::string server_name, UniqueFd fd) {
    name = std::move(server_name);
    handed = std::move(fd);
  };
  const Address address = Start(std::move(options));
  std::optional<StatusOr<std::shared_ptr<Connection>>> dialled;
  DialOptions dial(address);
  dial.tls = cluster_.Pinned();
  dial.expected.server_name = actor;
  auto dialling = [](DialOptions how,
                     std::optional<StatusOr<std::shared_ptr<Connection>>>* out) -> Task<void> {
    *out = co_await Dial(std::move(how));
  };
  loop_.scope.Spawn("dial", dialling(std::move(dial), &dialled));
  RunUntil([&] { return handed.valid(); });
  EXPECT_EQ(name, actor);
  EXPECT_FALSE(dialled) << "the handshake must not have been answered";
  // The process that got the descriptor answers the very ClientHello that was peeked at.
  auto answering = [](UniqueFd fd, std::shared_ptr<const TlsContext> tls) -> Task<Status> {
    const async::Executor executor = co_await async::asio::this_coro::executor;
    Socket socket = *WrapSocket(executor, std::move(fd));
    auto engine = *TlsEngine::Server(std::move(tls), "caller");
    co_return co_await TlsHandshake(socket, *engine);
  };
  EXPECT_TRUE(loop_.Run(answering(std::move(handed), cluster_.Server())).ok());
  RunUntil([&] { return dialled.has_value(); });
  EXPECT_TRUE(dialled->ok());
  EXPECT_TRUE(arrived_.empty());
}

TEST_F(ListenerTest, WithoutAServerNameARoutingListenerAnswersItself) {
  ListenOptions options = Options(*TcpAddress("127.0.0.1", 0));
  options.on_named = [](std::string, UniqueFd) { FAIL() << "there is no name"; };
  ASSERT_TRUE(DialTo(Start(std::move(options))).ok());
  RunUntil([this] { return arrived_.size() == 1; });
}

TEST_F(ListenerTest, ARenewedCertificateIsUsedForNewConnections) {
  const Address address = Start(Options(*TcpAddress("127.0.0.1", 0)));
  const auto first = DialTo(address);
  cluster_.head = cluster_.Issue(wire::Role::kHead);
  listener_->SetTls(cluster_.Server());
  const auto second = DialTo(address);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)->peer().certificate.key_hash, (*second)->peer().certificate.key_hash);
}

TEST_F(ListenerTest, DiallingNobodySaysSoAndWhatToLookAt) {
  Address address = Start(Options(*TcpAddress("127.0.0.1", 0)));
  listener_.reset();
  const auto refused = DialTo(address);
  EXPECT_EQ(ErrorCodeOf(refused.status()), ErrorCode::kConnection);
  EXPECT_EQ(MessageOf(refused.status())
                .find("nobody listens on " + address.Text() + "\n  is the address right"),
            0u)
      << refused.status();
}

TEST_F(ListenerTest, ASilentServerIsATimeoutThatNamesTheLimit) {
  const Bound silent = *BindTcp(*TcpAddress("127.0.0.1", 0));  // connects, never answers
  const auto late = DialTo(silent.address, 100ms);
  EXPECT_EQ(ErrorCodeOf(late.status()), ErrorCode::kTimeout);
  EXPECT_EQ(MessageOf(late.status())
                .find("timed out after 0.1 s: connecting to " + silent.address.Text()),
            0u)
      << late.status();
}

TEST_F(ListenerTest, ANameThatDoesNotResolveIsSaid) {
  const auto unknown = DialTo(*TcpAddress("no-such-host.invalid", 1));
  EXPECT_EQ(ErrorCodeOf(unknown.status()), ErrorCode::kConnection);
  EXPECT_NE(MessageOf(unknown.status()).find("the name no-such-host.invalid does not resolve"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::net
