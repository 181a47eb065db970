// Revoked tokens, as known to a process that lets others in: their certificates are worth nothing
// any more, and connections they opened end.
//
//   REV-1  Refuses is true of a client's or an observer's certificate of a revoked token, from the
//          moment of Set on.
//   REV-2  A connection that is watched is shut down by Set when its certificate is one of those;
//          so none outlives the word.
//   REV-3  Nodes and processes of launches stay (wire/token_rule.h).
//
// View: one process. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/net/certificate.h"

namespace troupe::net {

/// The refusal of a certificate whose token was revoked.
Status RevokedToken(const TokenId& token);

class Revocations {
 public:
  /// All that are revoked, in place of those known before.
  void Set(const std::vector<TokenId>& tokens);
  bool Refuses(const Identity& who) const;
  /// Shuts `fd` down when `who` is refused, at once or later. Drop the answer before `fd` is
  /// closed. Null where nothing is to be watched.
  std::shared_ptr<void> Watch(const Identity& who, int fd);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_ = MakeShared();
  static std::shared_ptr<Shared> MakeShared();
};

}  // namespace troupe::net
