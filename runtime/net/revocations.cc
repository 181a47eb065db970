#include "runtime/net/revocations.h"

#include <sys/socket.h>

#include "runtime/base/mutex.h"
#include "runtime/wire/token_rule.h"

namespace troupe::net {

struct Revocations::Shared {
  Mutex mutex;
  std::set<TokenId> revoked ABSL_GUARDED_BY(mutex);
  std::multimap<TokenId, int> watched ABSL_GUARDED_BY(mutex);
};

Status RevokedToken(const TokenId& token) {
  return MakeError(ErrorCode::kJoinRefused,
                   "its token " + token.Short() +
                       " was revoked, and what it had opened is ended\n  get a new "
                       "one: troupe token create --role client > token");
}

std::shared_ptr<Revocations::Shared> Revocations::MakeShared() {
  return std::make_shared<Shared>();
}

void Revocations::Set(const std::vector<TokenId>& tokens) {
  Shared& shared = *shared_;
  const MutexLock lock(shared.mutex);
  shared.revoked = {tokens.begin(), tokens.end()};
  for (const auto& [token, fd] : shared.watched) {
    if (shared.revoked.count(token) > 0) ::shutdown(fd, SHUT_RDWR);
  }
}

bool Revocations::Refuses(const Identity& who) const {
  if (who.token.IsNil() || !wire::EndsWithItsToken(who.role)) return false;
  Shared& shared = *shared_;
  const MutexLock lock(shared.mutex);
  return shared.revoked.count(who.token) > 0;
}

std::shared_ptr<void> Revocations::Watch(const Identity& who, int fd) {
  if (who.token.IsNil() || !wire::EndsWithItsToken(who.role)) return nullptr;
  Shared& shared = *shared_;
  const MutexLock lock(shared.mutex);
  if (shared.revoked.count(who.token) > 0) ::shutdown(fd, SHUT_RDWR);
  const auto entry = shared.watched.emplace(who.token, fd);
  return {shared_.get(), [kept = shared_, entry](void*) {
            Shared& held = *kept;
            const MutexLock inner(held.mutex);
            held.watched.erase(entry);
          }};
}

}  // namespace troupe::net
