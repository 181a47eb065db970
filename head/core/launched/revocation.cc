#include "head/core/launched/revocation.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/launch_views.h"
#include "head/core/launched/owned.h"
#include "head/core/machine/lived_time.h"
#include "head/core/nodes/owners.h"
#include "head/core/nodes/tokens.h"
#include "runtime/wire/token_rule.h"

namespace troupe::head {
namespace {

// Lifetime of a client's or an observer's certificate (net/certificate.h)
constexpr std::uint64_t kCertificateUs = 24ull * 3600 * 1'000'000;

bool InDetachedLaunch(Turn& turn, const LaunchId& id) {
  const Launch* launch = turn.FindLaunch(id);
  return launch != nullptr && launch->spec.detached;
}

void EndSessions(Turn& turn, const TokenId& token, const std::string& why) {
  std::vector<OwnerId> owners;
  for (auto& [id, session] : turn.state.sessions) {
    if (session.token != token || !wire::EndsWithItsToken(session.role)) continue;
    turn.Close(id, why);
    if (session.role == wire::Role::kClient) owners.push_back(OwnerId(session.subject));
  }
  for (const OwnerId& owner : owners) EndOwner(turn, owner, why);
}

// Ends objects of absent clients, and those that their ranks and actors made.
void EndThings(Turn& turn, const TokenId& token, const std::string& why) {
  Selection made;
  made.launch = [&](const Launch& launch) { return launch.token == token; };
  made.actor = [&](const Actor& actor) {
    return actor.token == token && !InDetachedLaunch(turn, actor.launch);
  };
  // others end with the launch or the actor that they are for
  made.group = [&](const Group& group) {
    const bool by_itself = !group.spec.gang && group.spec.actor.IsNil();
    return group.spec.token == token && by_itself && !InDetachedLaunch(turn, group.spec.launch);
  };
  EndAll(turn, made, why);
}

void NoteRevoked(Turn& turn, wire::TokenWritten token) {
  if (token.revoked) return;
  token.revoked = true;
  token.expires_us = std::min(token.expires_us, turn.wall_us);  // expires now
  token.created_lived_us = LivedMark(turn);
  turn.Append(std::move(token));
}

void TellAllNodes(Turn& turn) {
  std::vector<NodeId> nodes;
  for (const auto& [id, node] : turn.state.nodes) {
    if (!node.dead && !node.session.IsNil()) nodes.push_back(id);
  }
  for (const NodeId& node : nodes) TellRevoked(turn, node);
}

}  // namespace

void OnRevokeToken(Turn& turn, const Request& request, const wire::RevokeToken& message) {
  const auto known = turn.state.tokens.find(message.id);
  if (known == turn.state.tokens.end()) {
    turn.Refuse(request, ErrorCode::kNotFound, "no token " + message.id.Hex());
    return;
  }
  wire::TokenRevoked reply;
  NoteRevoked(turn, known->second);
  const TokenId id = message.id;
  if (wire::EndsWithItsToken(turn.state.tokens.at(id).role)) {
    for (auto& [launch_id, launch] : turn.state.launches) {
      if (launch.token == id && launch.open() && launch.spec.detached)
        reply.detached.push_back(InfoOf(turn, launch));
    }
    for (const auto& [node_id, node] : turn.state.nodes) {
      if (!node.dead && node.session.IsNil()) reply.cut_off.push_back(node.name);
    }
    reply.until_us = turn.wall_us + kCertificateUs;
    TellAllNodes(turn);
  }
  // Before its own session is closed, should it be one of those.
  turn.Reply(request, std::move(reply));
  const std::string why = "the token it came by (" + id.Short() + ") was revoked";
  if (wire::EndsWithItsToken(turn.state.tokens.at(id).role)) {
    EndSessions(turn, id, why);
    EndThings(turn, id, why);
  }
}

void EndToken(Turn& turn, const TokenId& id, const std::string& why) {
  const auto known = turn.state.tokens.find(id);
  if (known == turn.state.tokens.end()) return;
  if (known->second.uses == 0) {
    wire::TokenWritten forgotten;  // without a role
    forgotten.id = id;
    turn.Append(std::move(forgotten));
    return;
  }
  NoteRevoked(turn, known->second);
  TellAllNodes(turn);
  EndSessions(turn, id, why);
  EndThings(turn, id, why);
}

}  // namespace troupe::head
