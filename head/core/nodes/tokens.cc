#include "head/core/nodes/tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/core/machine/lived_time.h"
#include "head/core/nodes/roles.h"
#include "runtime/wire/token_rule.h"

namespace troupe::head {
namespace {

constexpr std::uint64_t kLifetimeUs = 24ull * 3600 * 1'000'000;
constexpr std::uint64_t kSecondUs = 1'000'000;
// From when it is over: longer than the certificate of a client lives that was let in by it.
constexpr std::uint64_t kKeptUs = 25ull * 3600 * kSecondUs;

// When it lets nobody in any more.
std::uint64_t OverAtUs(const Turn& turn, const wire::TokenWritten& token) {
  const bool used_up = token.single_use && token.used_us != 0;
  return used_up ? std::min(token.used_us, token.expires_us)
                 : ExpiresUs(turn.state, token, turn.now, turn.wall_us);
}

bool IsOld(const Turn& turn, const wire::TokenWritten& token) {
  const std::uint64_t over_us = OverAtUs(turn, token);
  if (over_us > turn.wall_us || turn.wall_us - over_us < kKeptUs) return false;
  // In a revoked token created_lived_us is the moment of its revocation.
  return !token.revoked || LivedUs(turn.state, turn.now) + 1 >= token.created_lived_us + kKeptUs;
}

wire::Revoked AllRevoked(const State& state) {
  wire::Revoked revoked;
  for (const auto& [id, token] : state.tokens) {
    if (token.revoked && wire::EndsWithItsToken(token.role)) revoked.tokens.push_back(id);
  }
  return revoked;
}

void Forget(Turn& turn) {
  if (turn.state.read_only) return;  // no room for it
  std::vector<TokenId> gone;
  for (const auto& [id, token] : turn.state.tokens) {
    if (IsOld(turn, token)) gone.push_back(id);
  }
  for (const TokenId& id : gone) {
    wire::TokenWritten forgotten;  // without a role
    forgotten.id = id;
    turn.Append(std::move(forgotten));
  }
}

}  // namespace

void OnCreateToken(Turn& turn, const Request& request, const wire::CreateToken& message) {
  const wire::Role role = message.role == wire::Role::kNone ? wire::Role::kWorker : message.role;
  if (role != wire::Role::kWorker && role != wire::Role::kClient && role != wire::Role::kObserver) {
    turn.Refuse(request, ErrorCode::kInvalid, "a token is for a worker, a client or an observer");
    return;
  }
  if (!message.user.empty() && message.user != request.user) {
    const std::string objection =
        !IsAdministrator(turn, request)
            ? "only the administrator of this cluster makes tokens for others: the user that its "
              "head runs as (" + turn.state.users.self + "). You are " + request.user
            : ObjectionToUser(message.user);
    if (!objection.empty()) {
      turn.Refuse(request, ErrorCode::kInvalid, objection);
      return;
    }
  }
  Forget(turn);
  if (turn.state.tokens.size() >= kTokensMax) {
    turn.Refuse(request, ErrorCode::kTooLarge,
                "there are " + std::to_string(kTokensMax) +
                    " tokens, which is the limit\n  revoke some (`troupe token list`, "
                    "`troupe token revoke ID`), or make them for a shorter time (--ttl): what is "
                    "over is forgotten after a day");
    return;
  }
  const std::uint64_t lifetime = message.ttl_s == 0 ? kLifetimeUs : message.ttl_s * kSecondUs;
  TokenMint::Minted minted = turn.mint.Mint(role, turn.wall_us, lifetime, message.single_use);
  minted.record.note = message.note;
  minted.record.user = message.user.empty() ? request.user : message.user;
  minted.record.created_lived_us = LivedMark(turn);
  wire::TokenCreated reply;
  reply.id = minted.record.id;
  reply.expires_us = minted.record.expires_us;
  reply.token = std::move(minted.text);
  turn.Append(std::move(minted.record));
  turn.Reply(request, std::move(reply));
}

void OnListTokens(Turn& turn, const Request& request) {
  Forget(turn);
  wire::TokenList list;
  for (const auto& [id, token] : turn.state.tokens) {
    wire::TokenInfo info;
    info.id = id;
    info.role = token.role;
    info.expires_us = ExpiresUs(turn.state, token, turn.now, turn.wall_us);
    info.revoked = token.revoked;
    info.single_use = token.single_use;
    info.uses = token.uses;
    info.note = token.note;
    info.user = turn.state.users.Named(token.user);
    info.created_us = token.created_us;
    list.tokens.push_back(std::move(info));
  }
  turn.Reply(request, std::move(list));
}

void NoteTokenUsed(Turn& turn, const TokenId& id) {
  const auto known = turn.state.tokens.find(id);
  if (known == turn.state.tokens.end()) return;
  wire::TokenWritten token = known->second;
  if (token.used_us == 0) token.used_us = turn.wall_us;
  ++token.uses;
  turn.Append(std::move(token));
}

bool IsRevoked(const State& state, wire::Role role, const TokenId& token) {
  const auto known = state.tokens.find(token);
  return wire::EndsWithItsToken(role) && known != state.tokens.end() && known->second.revoked;
}

void TellRevoked(Turn& turn, const NodeId& node) {
  wire::Revoked revoked = AllRevoked(turn.state);
  if (!revoked.tokens.empty()) turn.ToNode(node, std::move(revoked));
}

}  // namespace troupe::head
