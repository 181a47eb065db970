#include "runtime/net/revocations.h"

#include <sys/socket.h>

#include "runtime/wire/token_rule.h"

namespace troupe::net {

struct Revocations::Shared {
  mutable std::mutex mutex;
  std::set<TokenId> revoked;
  std::multimap<TokenId, int> watched;
};

Status RevokedToken(const TokenId& token) {
  return MakeError(ErrorCode::kJoinRefused, "its token " + token.Short() + " was revoked, and what it had opened is ended\n  get a new "
                                            "one: troupe token create --role client > token");
}

std::shared_ptr<Revocations::Shared> Revocations::MakeShared() { return std::make_shared<Shared>(); }

void Revocations::Set(const std::vector<TokenId>& tokens) {
  const std::lock_guard lock(shared_->mutex);
  shared_->revoked = {tokens.begin(), tokens.end()};
  for (const auto& [token, fd] : shared_->watched) {
    if (shared_->revoked.count(token) > 0) ::shutdown(fd, SHUT_RDWR);
  }
}

bool Revocations::Refuses(const Identity& who) const {
  if (who.token.IsNil() || !wire::EndsWithItsToken(who.role)) return false;
  const std::lock_guard lock(shared_->mutex);
  return shared_->revoked.count(who.token) > 0;
}

std::shared_ptr<void> Revocations::Watch(const Identity& who, int fd) {
  if (who.token.IsNil() || !wire::EndsWithItsToken(who.role)) return nullptr;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->revoked.count(who.token) > 0) ::shutdown(fd, SHUT_RDWR);
  const auto entry = shared_->watched.emplace(who.token, fd);
  return {shared_.get(), [shared = shared_, entry](void*) {
            const std::lock_guard inner(shared->mutex);
            shared->watched.erase(entry);
          }};
}

}  // namespace troupe::net
