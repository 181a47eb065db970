#include "runtime/net/open_session.h"

#include <algorithm>
#include <utility>

#include "runtime/net/dialer.h"
#include "runtime/net/retry_pause.h"
#include "runtime/net/tls_context.h"

namespace troupe::net {
namespace {

using async::Task;

StatusOr<std::shared_ptr<const TlsContext>> ContextFor(const OpenOptions& options,
                                                       const Clock& clock) {
  if (options.address.is_unix()) return std::shared_ptr<const TlsContext>();
  if (options.credentials) return TlsContext::ForClient(*options.credentials, clock);
  if (options.token) return TlsContext::ForPinnedClient(options.token->ca_key_hash, clock);
  return MakeError(
      ErrorCode::kJoinRefused,
      "connecting to " + options.address.Text() +
          " needs a token: pass token_file=, set TROUPE_TOKEN_FILE, or use --token-file\n"
          "  make one on the head: troupe token create > token");
}

// `turned_away`: a Unix socket was closed before it said anything, as happens to those who come
// when too many are let in at the time. (On TCP that ends the TLS handshake, and Dial asks again.)
Task<StatusOr<OpenedSession>> OpenOnce(OpenOptions options, std::shared_ptr<const TlsContext> tls,
                                       Instant end, const Clock& clock, bool* turned_away) {
  DialOptions dial(options.address);
  dial.tls = std::move(tls);
  dial.expected = options.expected;
  if (dial.expected.role == wire::Role::kNone) dial.expected.role = wire::Role::kHead;
  dial.limit = std::max<Duration>(std::chrono::milliseconds(1), end - clock.Now());
  const bool local = options.address.is_unix();
  OpenedSession opened;
  TROUPE_CO_ASSIGN(opened.connection, co_await Dial(std::move(dial)));
  JoinOptions join;
  join.hello = std::move(options.hello);
  if (!options.credentials && !local) join.token = std::move(options.token);
  if (options.credentials)
    join.hello.cluster_id = options.credentials->certificate.identity()->cluster;
  join.key = std::move(options.key);
  join.limit = std::max<Duration>(std::chrono::milliseconds(1), end - clock.Now());
  StatusOr<Joined> joined = co_await Join(opened.connection, std::move(join), clock);
  *turned_away = local && !joined.ok() && ErrorCodeOf(joined.status()) == ErrorCode::kConnection;
  TROUPE_CO_ASSIGN(opened.joined, std::move(joined));
  co_return opened;
}

}  // namespace

Task<StatusOr<OpenedSession>> OpenSession(OpenOptions options, const Clock& clock) {
  const Instant end = clock.Now() + options.limit;
  TROUPE_CO_ASSIGN(auto tls, ContextFor(options, clock));
  RetryPause pause;
  for (;;) {
    bool turned_away = false;
    OpenOptions attempt = options;
    auto opened = co_await OpenOnce(std::move(attempt), tls, end, clock, &turned_away);
    if (!turned_away || !pause.FitsBetween(clock.Now(), end)) co_return opened;
    co_await pause.Wait();
  }
}

}  // namespace troupe::net
