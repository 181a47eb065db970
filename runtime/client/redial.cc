#include "runtime/client/redial.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"

namespace troupe::client {
namespace {

using async::Task;
using namespace std::chrono_literals;

constexpr Duration kPauseFirst = 20ms;
constexpr Duration kPauseMax = 1s;
constexpr Duration kAttemptMax = 5s;

// Asking again would be answered the same.
bool Final(const Status& status) {
  switch (ErrorCodeOf(status)) {
    case ErrorCode::kJoinRefused:
    case ErrorCode::kWrongCluster:
    case ErrorCode::kVersionMismatch:
      return true;
    default:
      return false;
  }
}

Status GivenUp(const net::Address& address, const Status& lost, Duration limit,
               const Status& last) {
  char within[64];
  std::snprintf(within, sizeof within, "within %.1f s, counted from its loss", Seconds(limit));
  return MakeError(ErrorCode::kConnection, "the connection to the head at " + address.Text() +
                                               " was lost (" + MessageOf(lost) +
                                               ") and could not be had again " + within + ": " +
                                               MessageOf(last));
}

}  // namespace

net::OpenOptions OptionsToReturn(const net::OpenOptions& first, const net::Joined& joined) {
  net::OpenOptions options(first.address);
  options.expected = first.expected;
  options.hello = first.hello;
  options.hello.cluster_id = joined.welcome.cluster_id;
  // Over a Unix socket no certificate is shown: who this client was is told.
  options.hello.subject = joined.welcome.subject;
  options.credentials = joined.credentials;
  if (!first.address.is_unix() && !joined.credentials) options.token = first.token;
  return options;
}

Task<StatusOr<net::OpenedSession>> Redial(net::OpenOptions options, Status lost, Duration limit,
                                          const Clock& clock) {
  async::OsRandom random;
  const Instant end = clock.Now() + limit;
  Duration pause = kPauseFirst;
  for (;;) {
    net::OpenOptions attempt = options;
    attempt.limit = std::clamp<Duration>(end - clock.Now(), 1ms, kAttemptMax);
    if (attempt.credentials &&
        net::RenewalDue(attempt.credentials->certificate.validity(), clock.WallTimeUs())) {
      attempt.key = net::PrivateKey::Generate();
    }
    auto opened = co_await net::OpenSession(std::move(attempt), clock);
    if (opened.ok()) co_return opened;
    if (Final(opened.status()) || clock.Now() + pause >= end) {
      co_return GivenUp(options.address, lost, limit, opened.status());
    }
    const Duration jitter(
        static_cast<std::int64_t>(random.Next() % static_cast<std::uint64_t>(pause.count())));
    co_await async::SleepFor(pause / 2 + jitter);
    pause = std::min(pause * 2, kPauseMax);
  }
}

}  // namespace troupe::client
