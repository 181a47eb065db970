#include "head/core/machine/turn.h"

#include "head/core/machine/apply.h"
#include "head/core/machine/event_notes.h"
#include "runtime/base/check.h"

namespace troupe::head {

void Turn::Append(wire::EventBody body, std::string attachment) {
  NoteEvent(state, body, wall_us);  // before it is applied: what ends is known until then
  events.push_back({std::move(body), std::move(attachment)});
  Apply(state, events.back());
}

void Turn::SendTo(const Route& route, wire::Body body, std::string attachment,
                  std::uint64_t reply_to) {
  if (route.IsNil()) return;
  wire::Message message;
  message.reply_to = reply_to;
  message.body = std::move(body);
  message.attachment = std::move(attachment);
  sends.push_back({route, std::move(message)});
}

void Turn::ToNode(const NodeId& node, wire::Body body, std::string attachment) {
  const Node* found = SeeNode(node);
  if (found == nullptr || found->session.IsNil()) return;
  SendTo({found->session, ProcessId()}, std::move(body), std::move(attachment));
}

void Turn::Reply(const Request& request, wire::Body body, std::string attachment) {
  if (request.id == 0) return;
  SendTo(request.route, std::move(body), std::move(attachment), request.id);
}

void Turn::Refuse(const Request& request, ErrorCode code, std::string text) {
  wire::ErrorReply reply;
  reply.code = static_cast<std::uint16_t>(code);
  reply.text = std::move(text);
  Reply(request, std::move(reply));
}

void Turn::Close(const SessionId& session, std::string reason) {
  closes.push_back({session, std::move(reason)});
}

void Turn::ProbeNode(const Node& node) { probes.push_back({node.id, node.incarnation}); }

void Turn::Happened(const Fact& fact) {
  TROUPE_CHECK(follow_up_ != nullptr, "in a turn that only looks");
  follow_up_(*this, fact);
}

const Node* Turn::SeeNode(const NodeId& id) const {
  const auto found = state.nodes.find(id);
  return found == state.nodes.end() ? nullptr : &found->second;
}
Node* Turn::FindNode(const NodeId& id) {
  const auto found = state.nodes.find(id);
  if (found == state.nodes.end()) return nullptr;
  touched_nodes.insert(id);
  state.changed_nodes.insert(id);
  return &found->second;
}
Group* Turn::FindGroup(const GroupId& id) {
  const auto found = state.groups.find(id);
  return found == state.groups.end() ? nullptr : &found->second;
}
Launch* Turn::FindLaunch(const LaunchId& id) {
  const auto found = state.launches.find(id);
  return found == state.launches.end() ? nullptr : &found->second;
}
Actor* Turn::FindActor(const ActorId& id) {
  const auto found = state.actors.find(id);
  return found == state.actors.end() ? nullptr : &found->second;
}

std::string Turn::LossOf(const NodeId& id) {
  const Node* node = SeeNode(id);
  return "node " + NodeName(id) + " is lost: " + (node == nullptr ? std::string() : node->why);
}

std::string Turn::NodeName(const NodeId& id) const {
  const Node* node = SeeNode(id);
  return node == nullptr ? id.Short() : node->name;
}

}  // namespace troupe::head
