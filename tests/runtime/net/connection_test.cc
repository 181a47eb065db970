// Method: a Connection over one end of a socketpair; the test holds the other end raw, and writes
// frames whole, in pieces, cut off, or does not read at all.
#include "runtime/net/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/async/deadline.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/limits.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

using async::Task;
using namespace std::chrono_literals;

wire::Message Note(std::string text, std::string attachment = "") {
  wire::Message message;
  wire::Ok body;
  body.text = std::move(text);
  message.body = body;
  message.attachment = std::move(attachment);
  return message;
}
Task<StatusOr<wire::Message>> ReceiveOne(std::shared_ptr<Connection> connection) {
  co_return co_await connection->Receive();
}
Task<Status> FinishNow(std::shared_ptr<Connection> connection) {
  co_await connection->Finish(5s);
  co_return Status();
}
Task<StatusOr<wire::Message>> ReceiveFor(std::shared_ptr<Connection> connection, Duration limit) {
  auto receiving = connection->Receive();
  co_return co_await async::WithDeadline(std::move(receiving), limit, "a message");
}
Task<Status> DrainNow(std::shared_ptr<Connection> connection) {
  co_return co_await connection->Drain();
}

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    connection_ = *AdoptUnixSocket(loop_.context.get_executor(), UniqueFd(ends[0]), "the peer");
    raw_ = UniqueFd(ends[1]);
  }
  void Write(const std::string& bytes) {
    ASSERT_EQ(write(raw_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  StatusOr<wire::Message> Receive() { return loop_.Run(ReceiveOne(connection_)); }
  std::string ReadAll() {
    std::string all;
    char block[65536];
    for (ssize_t n; (n = read(raw_.get(), block, sizeof block)) > 0;)
      all.append(block, static_cast<std::size_t>(n));
    return all;
  }

  TestLoop loop_;
  std::shared_ptr<Connection> connection_;
  UniqueFd raw_;
};

TEST_F(ConnectionTest, MessagesInOneWriteArriveOneByOne) {
  Write(*wire::EncodeFrame(Note("a")) + *wire::EncodeFrame(Note("b", "bytes")));
  EXPECT_EQ(*Receive(), Note("a"));
  EXPECT_EQ(*Receive(), Note("b", "bytes"));
}

TEST_F(ConnectionTest, AnEofBetweenMessagesIsClean) {
  Write(*wire::EncodeFrame(Note("a")));
  raw_.Reset();
  EXPECT_TRUE(Receive().ok());
  const auto end = Receive();
  EXPECT_EQ(MessageOf(end.status()), "the peer closed the connection");
  EXPECT_TRUE(connection_->clean_eof());
  EXPECT_EQ(Receive().status(), end.status()) << "every later call gives the same error";
}

TEST_F(ConnectionTest, AnEofWithinAMessageNamesThePeerAndTheBytes) {
  const std::string frame = *wire::EncodeFrame(Note("a"));
  Write(frame.substr(0, 20));
  raw_.Reset();
  EXPECT_EQ(MessageOf(Receive().status()),
            "the peer ended the connection in the middle of a message, of which 20 bytes had come");
  EXPECT_FALSE(connection_->clean_eof());
}

TEST_F(ConnectionTest, JunkIsRefusedByItsHeader) {
  Write("GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  const auto junk = Receive();
  EXPECT_EQ(ErrorCodeOf(junk.status()), ErrorCode::kInvalid);
  EXPECT_NE(MessageOf(junk.status()).find("the peer: "), std::string::npos);
}

TEST_F(ConnectionTest, ABodyOverTheLimitIsRefusedByItsHeaderAlone) {
  wire::FrameHeader header;
  header.body_bytes = wire::kBodyBytesMax + 8;
  std::string bytes(wire::kHeaderBytes, '\0');
  wire::EncodeHeader(header, bytes.data());
  Write(bytes);
  EXPECT_EQ(ErrorCodeOf(Receive().status()), ErrorCode::kTooLarge);
}

TEST_F(ConnectionTest, SentMessagesKeepTheirOrderAndFinishFlushesThem) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(connection_->Send(Note(std::to_string(i))).ok());
  EXPECT_TRUE(loop_.Run(FinishNow(connection_)).ok());
  wire::FrameReader reader;
  reader.Feed(ReadAll());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(**reader.Next(), Note(std::to_string(i)));
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(MessageOf(connection_->Send(Note("late"))),
            "the connection to the peer was closed here");
}

TEST_F(ConnectionTest, APeerThatDoesNotReadIsDisconnectedAt64MiB) {
  const wire::Message large = Note("x", std::string(8 << 20, 'x'));
  Status sent;
  int count = 0;
  while (sent.ok() && ++count < 20) {
    sent = connection_->Send(large);
    loop_.Poll();
  }
  EXPECT_EQ(ErrorCodeOf(sent), ErrorCode::kConnection);
  EXPECT_NE(MessageOf(sent).find("takes its messages too slowly"), std::string::npos);
  EXPECT_GE(count, 7);
  EXPECT_LE(count, 9);
  EXPECT_FALSE(Receive().ok());
}

TEST_F(ConnectionTest, DrainWaitsForThePeerToRead) {
  ASSERT_TRUE(connection_->Send(Note("x", std::string(8 << 20, 'x'))).ok());
  std::optional<Status> drained;
  loop_.scope.Spawn(
      "drain",
      [](std::shared_ptr<Connection> connection, std::optional<Status>* out) -> Task<void> {
        *out = co_await connection->Drain();
      }(connection_, &drained));
  loop_.Poll();
  EXPECT_FALSE(drained);
  fcntl(raw_.get(), F_SETFL, O_NONBLOCK);
  std::size_t read_bytes = 0;
  while (read_bytes < (8u << 20)) {
    read_bytes += ReadAll().size();
    loop_.Poll();
  }
  EXPECT_TRUE(drained && drained->ok());
}

TEST_F(ConnectionTest, AMessageOverAWireLimitIsRefusedAndTheConnectionStays) {
  EXPECT_EQ(
      ErrorCodeOf(connection_->Send(Note("x", std::string(wire::kAttachmentBytesMax + 1, 'x')))),
      ErrorCode::kTooLarge);
  EXPECT_TRUE(connection_->Send(Note("still")).ok());
}

TEST_F(ConnectionTest, ACancelledReceiveLosesNothing) {
  const std::string frame = *wire::EncodeFrame(Note("a"));
  Write(frame.substr(0, 10));
  EXPECT_EQ(ErrorCodeOf(loop_.Run(ReceiveFor(connection_, 20ms)).status()), ErrorCode::kTimeout);
  Write(frame.substr(10));
  EXPECT_EQ(*Receive(), Note("a"));
}

TEST_F(ConnectionTest, CloseEndsAPendingReceiveWithItsReason) {
  std::optional<StatusOr<wire::Message>> received;
  loop_.scope.Spawn("receive",
                    [](std::shared_ptr<Connection> connection,
                       std::optional<StatusOr<wire::Message>>* out) -> Task<void> {
                      *out = co_await connection->Receive();
                    }(connection_, &received));
  loop_.Poll();
  connection_->Close(MakeError(ErrorCode::kFenced, "an older epoch"));
  loop_.Poll();
  ASSERT_TRUE(received);
  EXPECT_EQ(ErrorCodeOf(received->status()), ErrorCode::kFenced);
}

TEST_F(ConnectionTest, ALostPeerFailsTheSenderToo) {
  raw_.Reset();
  ASSERT_TRUE(connection_->Send(Note("a")).ok());
  loop_.Poll();
  EXPECT_NE(MessageOf(connection_->Send(Note("b"))).find("the connection to the peer was lost"),
            std::string::npos);
  EXPECT_FALSE(loop_.Run(DrainNow(connection_)).ok());
}

}  // namespace
}  // namespace troupe::net
