// Method: descriptors of a pipe cross a socketpair, stream and SEQPACKET, and are written through.
#include "runtime/net/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::net {
namespace {

struct Ends {
  explicit Ends(int type) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    here = UniqueFd(fds[0]);
    there = UniqueFd(fds[1]);
  }
  UniqueFd here, there;
};

class FdPassing : public ::testing::TestWithParam<int> {};

TEST_P(FdPassing, DescriptorsArriveWithThePayloadAndAreCloseOnExec) {
  Ends ends(GetParam());
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_TRUE(SendFds(ends.here.get(), "payload", {pipe_ends[0], pipe_ends[1]}).ok());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  auto received = RecvFds(ends.there.get(), 100);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->payload, "payload");
  ASSERT_EQ(received->fds.size(), 2u);
  EXPECT_NE(fcntl(received->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(write(received->fds[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(received->fds[0].get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_P(FdPassing, AClosedPeerIsAnEmptyPayload) {
  Ends ends(GetParam());
  ends.here.Reset();
  EXPECT_EQ(RecvFds(ends.there.get(), 100)->payload, "");
}
INSTANTIATE_TEST_SUITE_P(Sockets, FdPassing, ::testing::Values(SOCK_STREAM, SOCK_SEQPACKET));

TEST(FdPassingLimits, ACutDatagramIsAnErrorAndItsDescriptorsAreClosed) {
  Ends ends(SOCK_SEQPACKET);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_TRUE(SendFds(ends.here.get(), std::string(100, 'x'), {pipe_ends[1]}).ok());
  close(pipe_ends[1]);
  EXPECT_EQ(ErrorCodeOf(RecvFds(ends.there.get(), 10).status()), ErrorCode::kTooLarge);
  char byte;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0) << "the last writer is closed";
  close(pipe_ends[0]);
}

TEST(FdPassingLimits, NeedsAPayloadAndTakesSixteenAtMost) {
  Ends ends(SOCK_STREAM);
  EXPECT_FALSE(SendFds(ends.here.get(), "", {0}).ok());
  EXPECT_FALSE(SendFds(ends.here.get(), "x", std::vector<int>(17, 0)).ok());
}

TEST(FdPassingLimits, AGonePeerIsAnErrorNotASignal) {
  Ends ends(SOCK_STREAM);
  ends.there.Reset();
  EXPECT_EQ(ErrorCodeOf(SendFds(ends.here.get(), "x", {})), ErrorCode::kConnection);
}

}  // namespace
}  // namespace troupe::net
