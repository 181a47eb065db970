#include "head/core/tokens.h"

#include <utility>

namespace troupe::head {
namespace {

constexpr std::uint64_t kLifetimeUs = 24ull * 3600 * 1'000'000;
constexpr std::uint64_t kSecondUs = 1'000'000;

}  // namespace

void OnCreateToken(Turn& turn, const Request& request, const wire::CreateToken& message) {
  const wire::Role role = message.role == wire::Role::kNone ? wire::Role::kWorker : message.role;
  if (role != wire::Role::kWorker && role != wire::Role::kClient && role != wire::Role::kObserver) {
    turn.Refuse(request, ErrorCode::kInvalid, "a token is for a worker, a client or an observer");
    return;
  }
  const std::uint64_t lifetime = message.ttl_s == 0 ? kLifetimeUs : message.ttl_s * kSecondUs;
  TokenMint::Minted minted = turn.mint.Mint(role, turn.wall_us, lifetime, message.single_use);
  minted.record.note = message.note;
  wire::TokenCreated reply;
  reply.id = minted.record.id;
  reply.expires_us = minted.record.expires_us;
  reply.token = std::move(minted.text);
  turn.Append(std::move(minted.record));
  turn.Reply(request, std::move(reply));
}

void OnListTokens(Turn& turn, const Request& request) {
  wire::TokenList list;
  for (const auto& [id, token] : turn.state.tokens) {
    wire::TokenInfo info;
    info.id = id;
    info.role = token.role;
    info.expires_us = token.expires_us;
    info.revoked = token.revoked;
    info.single_use = token.single_use;
    info.uses = token.uses;
    info.note = token.note;
    info.created_us = token.created_us;
    list.tokens.push_back(std::move(info));
  }
  turn.Reply(request, std::move(list));
}

void OnRevokeToken(Turn& turn, const Request& request, const wire::RevokeToken& message) {
  const auto known = turn.state.tokens.find(message.id);
  if (known == turn.state.tokens.end()) {
    turn.Refuse(request, ErrorCode::kNotFound, "no token " + message.id.Hex());
    return;
  }
  wire::TokenWritten token = known->second;
  token.revoked = true;
  turn.Append(std::move(token));
  turn.Reply(request, wire::Ok());
}

void NoteTokenUsed(Turn& turn, const TokenId& id) {
  const auto known = turn.state.tokens.find(id);
  if (known == turn.state.tokens.end()) return;
  wire::TokenWritten token = known->second;
  if (token.used_us == 0) token.used_us = turn.wall_us;
  ++token.uses;
  turn.Append(std::move(token));
}

}  // namespace troupe::head
