#include "head/core/nodes/certificates.h"

#include <utility>

#include "runtime/base/rank_actor.h"

namespace troupe::head {
namespace {

bool RunsThisRank(Turn& turn, const Request& request, const NodeId& node) {
  const Launch* launch = turn.FindLaunch(request.launch);
  if (launch == nullptr || launch->marker || launch->epoch != request.epoch) return false;
  const auto rank = static_cast<std::uint32_t>(request.rank);
  return rank < launch->ranks.size() && launch->ranks[rank].node == node &&
         request.actor == RankActorId(request.launch, request.epoch, rank);
}

bool RunsThisActor(Turn& turn, const Request& request, const NodeId& node) {
  const Actor* actor = turn.FindActor(request.actor);
  return actor != nullptr && actor->live() && actor->place.node == node;
}

}  // namespace

void OnCertifyProcess(Turn& turn, const Request& request, const wire::CertifyProcess& message) {
  if (request.id == 0) return;
  Certify certify;
  certify.to = request.route;
  certify.reply_to = request.id;
  certify.request = message.request;
  certify.role = request.role;
  if (request.role == wire::Role::kProcess) {
    const NodeId node = turn.state.sessions[request.route.session].node;
    const bool runs = !node.IsNil() && !request.actor.IsNil() &&
                      (request.rank >= 0 ? RunsThisRank(turn, request, node)
                                         : RunsThisActor(turn, request, node));
    if (!runs) {
      turn.Refuse(request, ErrorCode::kJoinRefused,
                  "the head has no such actor or rank on node " + turn.NodeName(node) +
                      ": no certificate for this process");
      return;
    }
    certify.subject = request.actor;
  } else if (request.role == wire::Role::kClient) {
    certify.subject = Id128{request.owner.hi, request.owner.lo};
    certify.token = request.token;
  } else {
    turn.Refuse(request, ErrorCode::kInvalid, "certificates are for clients, actors and ranks");
    return;
  }
  turn.certificates.push_back(std::move(certify));
}

}  // namespace troupe::head
