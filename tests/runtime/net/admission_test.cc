// Method: tickets without sockets, and connections on loopback whose other end speaks or is silent.
// AD-1 to AD-3 of runtime/net/admission.h.
#include "runtime/net/admission.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "runtime/base/unique_fd.h"

namespace troupe::net {
namespace {

/// A TCP connection on loopback; `mine` is the end that was accepted.
struct Connected {
  Connected() {
    UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    other.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(other.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    mine.Reset(accept(listener.get(), nullptr, nullptr));
  }
  void Speak() {
    EXPECT_EQ(send(other.get(), "x", 1, 0), 1);
    pollfd arrives{mine.get(), POLLIN, 0};
    EXPECT_EQ(poll(&arrives, 1, 60'000), 1);
  }
  bool Open() const {
    char byte;
    const ssize_t got = recv(other.get(), &byte, 1, MSG_DONTWAIT);
    return got < 0 && errno == EAGAIN;
  }
  UniqueFd mine, other;
};

TEST(Admission, SixteenOfAHostAndSoManyInAll) {
  Admission admission(2, 3);
  auto a1 = admission.Admit("a"), a2 = admission.Admit("a");
  EXPECT_TRUE(a1 && a2);
  EXPECT_FALSE(admission.Admit("a"));
  auto b = admission.Admit("b");
  EXPECT_TRUE(b);
  EXPECT_FALSE(admission.Admit("c")) << "the total";
  a1.reset();
  EXPECT_TRUE(admission.Admit("a")) << "a ticket given back is free again";
  EXPECT_EQ(admission.open(), 2u);
}

TEST(Admission, UnixSocketsCountInTheTotalOnly) {
  Admission admission(1, 3);
  auto one = admission.Admit(""), two = admission.Admit("");
  EXPECT_TRUE(one && two);
}

TEST(Admission, AD1_TheOneThatWasSilentLongestMakesRoom) {
  Admission admission(2, 3);
  Connected first, second, third, elsewhere, more;
  const auto one = admission.Admit("a", first.mine.get()),
             two = admission.Admit("a", second.mine.get());
  first.Speak();
  const auto three = admission.Admit("a", third.mine.get());
  EXPECT_TRUE(three);
  EXPECT_TRUE(first.Open()) << "AD-2: it has sent something";
  EXPECT_FALSE(second.Open());
  EXPECT_EQ(admission.open(), 2u);
  const auto four = admission.Admit("b", elsewhere.mine.get());
  const auto five = admission.Admit("c", more.mine.get());
  EXPECT_TRUE(four && five) << "one of all of them";
  EXPECT_EQ(admission.open(), 3u);
}

TEST(Admission, AD2_WhoSpeaksIsNotSentAwayForAnother) {
  Admission admission(1, 3);
  Connected speaks, late;
  const auto one = admission.Admit("a", speaks.mine.get());
  speaks.Speak();
  EXPECT_FALSE(admission.Admit("a", late.mine.get()));
  EXPECT_TRUE(speaks.Open());
}

TEST(Admission, ATicketMayOutliveIt) {
  std::shared_ptr<void> ticket;
  {
    Admission admission(1, 1);
    ticket = admission.Admit("a");
  }
  ticket.reset();
}

}  // namespace
}  // namespace troupe::net
