// Method: pairs of sockets in place of connections. REV-1 to REV-3 of runtime/net/revocations.h,
// and what a certificate says.
#include "runtime/net/revocations.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/base/unique_fd.h"

namespace troupe::net {
namespace {

Identity By(const TokenId& token, wire::Role role = wire::Role::kClient) {
  Identity who;
  who.cluster = ClusterId(1, 2);
  who.role = role;
  who.id = Id128{3, 4};
  who.token = token;
  return who;
}

class SocketPair {
 public:
  SocketPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    mine_.Reset(ends[0]);
    other_.Reset(ends[1]);
  }
  int fd() const { return mine_.get(); }
  bool Open() const {
    char byte = 'x';
    return send(other_.get(), &byte, 1, MSG_NOSIGNAL) == 1;
  }

 private:
  UniqueFd mine_, other_;
};

TEST(Revocations, REV1_OfClientsAndObserversAlone) {
  Revocations revocations;
  const TokenId token(5, 5);
  EXPECT_FALSE(revocations.Refuses(By(token)));
  revocations.Set({token});
  EXPECT_TRUE(revocations.Refuses(By(token)));
  EXPECT_TRUE(revocations.Refuses(By(token, wire::Role::kObserver)));
  EXPECT_FALSE(revocations.Refuses(By(token, wire::Role::kWorker))) << "REV-3";
  EXPECT_FALSE(revocations.Refuses(By(token, wire::Role::kProcess))) << "REV-3";
  EXPECT_FALSE(revocations.Refuses(By(TokenId(5, 6))));
  EXPECT_FALSE(revocations.Refuses(By(TokenId())));
}

TEST(Revocations, REV2_WhatIsOpenIsShutDownAndWhatWasLetGoOfIsNot) {
  Revocations revocations;
  const TokenId token(5, 5);
  const SocketPair ends, stays, gone, late;
  const auto one = revocations.Watch(By(token), ends.fd());
  const auto two = revocations.Watch(By(TokenId(5, 6)), stays.fd());
  revocations.Watch(By(token), gone.fd()).reset();
  revocations.Set({token});
  EXPECT_FALSE(ends.Open());
  EXPECT_TRUE(stays.Open());
  EXPECT_TRUE(gone.Open()) << "its number may be another's by now";
  const auto three = revocations.Watch(By(token), late.fd());
  EXPECT_FALSE(late.Open()) << "it came between the look and the watch";
}

TEST(Revocations, ACertificateSaysItsToken) {
  const Identity with = By(TokenId(7, 8)), without = By(TokenId());
  for (const Identity& who : {with, without}) {
    const StatusOr<Identity> read = ParseIdentity(FormatIdentity(who));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, who);
    EXPECT_EQ(read->token, who.token);
  }
  EXPECT_FALSE(ParseIdentity(FormatIdentity(with) + "/more").ok());
  EXPECT_FALSE(ParseIdentity(FormatIdentity(without) + "/").ok());
  EXPECT_FALSE(ParseIdentity(FormatIdentity(without) + "/" + TokenId().Hex()).ok());
}

}  // namespace
}  // namespace troupe::net
