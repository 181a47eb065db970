#include "head/core/machine/durable_text.h"

namespace troupe::head {

std::string DurableText(const State& state) {
  std::string out = "incarnation " + std::to_string(state.incarnation) + "\n";
  for (const auto& [id, node] : state.nodes) {
    out += "node " + id.Hex() + " " + node.name + " " + std::to_string(node.incarnation) +
           (node.dead ? " dead" : "") + (node.draining ? " draining" : "") + " " +
           node.total.Text() + "\n";
  }
  for (const auto& [id, hash] : state.node_keys) out += "key " + id.Hex() + " " + hash + "\n";
  for (const auto& [id, group] : state.groups) {
    out += "group " + id.Hex() + " " + NameOf(group.state) + " " + std::to_string(group.attempt) +
           (group.attempting ? " attempting" : "") + " " + std::to_string(group.places.size()) +
           "\n";
  }
  for (const auto& [id, launch] : state.launches) {
    out += "launch " + id.Hex() + " " + NameOf(launch.phase) + " " + std::to_string(launch.epoch) +
           " " + launch.driver.Hex() + (launch.cancel_requested ? " cancel" : "") +
           (launch.stop_asked ? " stop" : "");
    for (const Rank& rank : launch.ranks) out += std::string(" ") + NameOf(rank.done.outcome);
    if (launch.marker) {
      out += std::string(" marker ") + NameOf(launch.marker->outcome) + " " +
             std::to_string(launch.marker->epoch) + " " + launch.marker->request.Hex();
    }
    out += "\n";
  }
  for (const auto& [id, stone] : state.tombstones)
    out += "gone " + id.Hex() + NameOf(stone.outcome) + "\n";
  for (const auto& [id, actor] : state.actors) {
    out += "actor " + id.Hex() + " " + NameOf(actor.state) + " " +
           std::to_string(actor.incarnation) + " " + std::to_string(actor.restarts) +
           (actor.doomed ? " doomed" : "") + (actor.uncounted ? " uncounted" : "") +
           (actor.unwanted ? " unwanted" : "");
    const FormerLife& former = actor.former;
    if (!former.ended)
      out += " after " + std::to_string(former.incarnation) + " on " + former.node.Hex();
    out += "\n";
  }
  for (const auto& [key, value] : state.values) {
    out += "value " + key.first + "/" + key.second + " " + std::to_string(value.version) + " " +
           std::to_string(value.bytes.size()) + "\n";
  }
  for (const auto& [name, user] : state.users.by_name) {
    for (const auto& [kind, most] : user.caps)
      out += "quota " + name + " " + wire::NameOf(kind) + " " + std::to_string(most) + "\n";
  }
  for (const auto& [id, token] : state.tokens) {
    out += "token " + id.Hex() + (token.revoked ? " revoked " : " ") + std::to_string(token.uses) +
           "\n";
  }
  return out;
}

}  // namespace troupe::head
