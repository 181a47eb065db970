#include "head/core/nodes/roster.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "head/core/nodes/node_views.h"
#include "head/core/nodes/tokens.h"
#include "head/core/nodes/watches.h"

namespace troupe::head {
namespace {

// `wanted`, or with a number behind it when another node has that name.
std::string UniqueName(const State& state, const NodeId& id, const std::string& wanted) {
  const std::string base = wanted.empty() ? "node-" + id.Short() : wanted;
  for (int i = 1;; ++i) {
    const std::string name = i == 1 ? base : base + "-" + std::to_string(i);
    const auto taken = state.node_names.find(name);
    if (taken == state.node_names.end() || taken->second == id) return name;
  }
}

// People read these in listings and errors, on their terminals.
std::string ObjectionToNames(const wire::RegisterNode& message) {
  constexpr std::size_t kNameMax = 253;  // longest name of a host
  const auto printable = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  };
  for (const auto& [what, text] : {std::pair{"name", &message.name},
                                   {"host", &message.host},
                                   {"address", &message.listen_host}}) {
    if (text->size() <= kNameMax && printable(*text)) continue;
    return std::string("the ") + what + " that this node gives itself is no name: up to " +
           std::to_string(kNameMax) + " printable ASCII characters, without spaces";
  }
  for (const wire::Label& label : message.labels) {
    const auto shown = [](const std::string& text) {
      return std::none_of(text.begin(), text.end(),
                          [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
    };
    if (!shown(label.key) || !shown(label.value))
      return "a label of this node has a control character in it";
  }
  return {};
}

// Returns the part of a registration that is journaled, without the node's current holdings.
wire::RegisterNode Lasting(wire::RegisterNode message) {
  message.holdings.clear();
  message.ranks.clear();
  message.actors.clear();
  message.free.clear();
  message.free_version = 0;
  message.incarnation = 0;
  return message;
}

void Welcome(Turn& turn, const Request& request, const Node& node) {
  wire::NodeRegistered reply{node.id, node.incarnation, node.name};
  reply.lease_ms = static_cast<std::uint32_t>(Millis(turn.options.dead_after));
  reply.heartbeat_ms = static_cast<std::uint32_t>(Millis(turn.options.heartbeat));
  reply.measures_ms = static_cast<std::uint32_t>(Millis(turn.options.measures_every));
  turn.Reply(request, std::move(reply));
}

// Returns true if this head's own network may have failed, not the node: of all nodes that the
// network lies between, nobody is heard. With none but `node` there is nobody to tell.
bool NobodyElseIsHeard(const Turn& turn, const Node& node) {
  if (node.local) return false;
  bool others = false;
  for (const auto& [id, other] : turn.state.nodes) {
    if (id == node.id || other.dead || other.local) continue;
    if (turn.now - other.last_heard < turn.options.suspect_after) return false;
    others = true;
  }
  return others;
}

// Returns true if the silence may be this head's, which was cut off, or was until a moment ago.
bool MayComeBack(Turn& turn, const Node& node) {
  if (node.local) return false;
  if (NobodyElseIsHeard(turn, node)) {
    turn.state.cut_off = true;
    return true;
  }
  return turn.state.heard_again >= node.last_heard &&
         turn.now - turn.state.heard_again < turn.options.return_grace;
}

// Some of those that could know; at a node of another host, first those that are not on this host
// either: what is wrong here concerns them less.
std::set<NodeId> PeersToAsk(Turn& turn, const Node& node) {
  std::vector<NodeId> near;
  std::vector<NodeId> found;
  for (const auto& [id, other] : turn.state.nodes) {
    if (id == node.id || other.dead || other.suspect || other.session.IsNil()) continue;
    (other.local && !node.local ? near : found).push_back(id);
  }
  const auto shuffle = [&turn](std::vector<NodeId>& ids) {
    for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[turn.random.Next() % i]);
  };
  shuffle(found);
  shuffle(near);
  found.insert(found.end(), near.begin(), near.end());
  found.resize(std::min(found.size(), turn.options.peers_asked));
  return std::set<NodeId>(found.begin(), found.end());
}

// This host itself, among those that are asked for a node.
constexpr NodeId kThisHost{};

void AskPeers(Turn& turn, Node& node) {
  const std::set<NodeId> peers = PeersToAsk(turn, node);
  const std::uint64_t question = ++turn.state.questions;
  std::set<NodeId> asked = peers;
  if (!turn.options.boot_id.empty() && node.info.boot_id == turn.options.boot_id) {
    asked.insert(kThisHost);
    turn.looks.push_back({node.id, node.info.pid, question});
  }
  node.inquiry.Ask(question, std::move(asked), turn.now);
  wire::ProbePeer probe;
  probe.question = question;
  probe.node = node.id;
  probe.boot_id = node.info.boot_id;
  probe.listen_host = node.info.listen_host;
  probe.listen_port = node.info.listen_port;
  probe.unix_path = node.info.unix_path;
  for (const NodeId& peer : peers) turn.ToNode(peer, probe);
}

// "a, b and c", by name.
std::string NamesOf(Turn& turn, const std::set<NodeId>& nodes) {
  std::set<std::string> names;
  for (const NodeId& id : nodes) names.insert(turn.NodeName(id));
  std::string text;
  std::size_t left = names.size();
  for (const std::string& name : names) {
    text += name;
    --left;
    if (left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

std::string Silence(Turn& turn, const Node& node, Duration silent) {
  std::string text = "not heard of for " + std::to_string(Millis(silent)) + " ms";
  text += WhatItsWorkerDoes(node);
  std::set<NodeId> reached = node.inquiry.WhoSaid(true);
  std::set<NodeId> unreached = node.inquiry.WhoSaid(false);
  reached.erase(kThisHost);
  unreached.erase(kThisHost);
  if (!reached.empty()) {
    return text + ", although it answers " + NamesOf(turn, reached) +
           ": nothing passes between it and the head";
  }
  return unreached.empty() ? text : text + ", nor does it answer " + NamesOf(turn, unreached);
}

// Notes the answer to the last question; a node that is due may have waited for it.
void Answered(Turn& turn, Node& node, std::uint64_t question, const NodeId& by, bool reached) {
  node.inquiry.Answer(question, by, reached);
  const bool due = turn.now - node.last_heard >= turn.options.dead_after;
  if (due &&
      node.inquiry.At(turn.now, turn.options.peers_answer) == PeerInquiry::Verdict::kUnreached) {
    OnNodeTimer(turn, node.id);
  }
}

}  // namespace

void OnRegisterNode(Turn& turn, const Request& request, const wire::RegisterNode& message) {
  Session& session = turn.state.sessions[request.route.session];
  if (session.role != wire::Role::kWorker) {
    turn.Refuse(request, ErrorCode::kInvalid, "only a worker may register a node");
    return;
  }
  const std::string objection = ObjectionToNames(message);
  if (!objection.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid, objection);
    return;
  }
  wire::RegisterNode info = message;
  if (!(session.subject == Id128())) {
    if (!info.node.IsNil() && !(Id128(info.node) == session.subject)) {
      turn.Refuse(request, ErrorCode::kJoinRefused,
                  "the certificate belongs to node " + IdToHex(session.subject) + ", not to " +
                      info.node.Hex());
      return;
    }
    info.node = NodeId(session.subject);
  }
  if (info.node.IsNil()) info.node = NodeId::Random(turn.random);
  Node* node = turn.FindNode(info.node);
  const bool same = node != nullptr && !node->dead && message.incarnation != 0 &&
                    message.incarnation == node->incarnation;
  if (node != nullptr && !node->session.IsNil() && node->session != request.route.session) {
    turn.Close(node->session, "node " + node->name + " has connected anew");
    turn.state.sessions[node->session].node = NodeId();
  }
  if (node != nullptr && !node->dead && !same) {
    LoseNode(turn, *node, "its worker was started anew", true);
  }
  // The node has its incarnation from the worker before it, with which its processes ended.
  if (same && node->info.pid != message.pid) DropWatches(turn, *node);
  const bool was_dead = node != nullptr && node->dead;
  wire::NodeJoined joined;
  joined.registration = Lasting(info);
  joined.incarnation = node == nullptr ? 1 : node->incarnation + (same ? 0 : 1);
  joined.name = same ? node->name : UniqueName(turn.state, info.node, info.name);
  joined.wall_us = turn.wall_us;
  if (!same || !(node->info == joined.registration)) turn.Append(std::move(joined));
  node = turn.FindNode(info.node);
  node->session = request.route.session;
  node->reported = true;
  node->leaving = false;
  node->local = session.local;
  node->zygote_ready = false;
  node->preimports.clear();
  node->free_version = 0;
  session.node = info.node;
  Heard(turn, *node);
  turn.Arm(turn.now + turn.options.suspect_after, TimerKind::kNode, node->id);
  Welcome(turn, request, *node);
  TellRevoked(turn, node->id);
  turn.Happened(fact::NodeRegistered{info.node, was_dead, message});
  ResumeWatches(turn, *turn.FindNode(info.node), request.route.session);
  turn.state.dirty = true;
}

void Heard(Turn& turn, Node& node) {
  node.last_heard = turn.now;
  if (turn.state.cut_off && !node.local) {
    turn.state.cut_off = false;
    turn.state.heard_again = turn.now;
  }
  node.inquiry.Close();
  node.worker_state = 0;
  node.held_up_at = Instant();
  if (!node.suspect) return;
  node.suspect = false;
  turn.state.changed_nodes.insert(node.id);
  turn.state.dirty = true;
}

void OnHeartbeat(Turn& turn, Node& node, const wire::Heartbeat& message) {
  node.zygote_ready = message.zygote_ready;
  if (node.preimports != message.preimports) node.preimports = message.preimports;
  wire::HeartbeatAck ack;
  ack.sequence = message.sequence;
  turn.ToNode(node.id, std::move(ack));
  Settle(turn, node);
}

void Settle(Turn& turn, Node& node) {
  if (node.settled) return;
  node.settled = true;
  const NodeId id = node.id;
  turn.Happened(fact::NodeSettled{id});
}

void OnNodeTimer(Turn& turn, const NodeId& id) {
  Node* node = turn.FindNode(id);
  if (node == nullptr || node->dead) return;
  const CoreOptions& options = turn.options;
  const Duration silent = turn.now - node->last_heard;
  const auto again = [&](Instant due) { turn.Arm(due, TimerKind::kNode, id); };
  if (silent < options.suspect_after) return again(node->last_heard + options.suspect_after);
  node->suspect = true;
  if (!node->inquiry.open()) AskPeers(turn, *node);
  if (silent < options.dead_after) return again(node->last_heard + options.dead_after);
  if (silent < options.recreate_after) {
    const Instant last = node->last_heard + options.recreate_after;
    if (turn.now < node->held_up_at + options.dead_after)
      return again(std::min(node->held_up_at + options.dead_after, last));
    if (MayComeBack(turn, *node)) return again(std::min(turn.now + options.suspect_after, last));
    switch (node->inquiry.At(turn.now, options.peers_answer)) {
      case PeerInquiry::Verdict::kWaiting:
        return again(node->inquiry.asked_at() + options.peers_answer);
      case PeerInquiry::Verdict::kReached:
        AskPeers(turn, *node);
        return again(std::min(turn.now + options.suspect_after, last));
      case PeerInquiry::Verdict::kNobodyAsked:
      case PeerInquiry::Verdict::kUnreached:
        break;
    }
  }
  LoseNode(turn, *node, Silence(turn, *node, silent), false);
}

void OnPeerProbed(Turn& turn, const Node& peer, const wire::PeerProbed& message) {
  Node* node = turn.FindNode(message.node);
  if (node == nullptr || node->dead || !node->inquiry.open()) return;
  Answered(turn, *node, message.question, peer.id, message.reached);
}

void OnWorkerSeen(Turn& turn, const WorkerSeen& input) {
  Node* node = turn.FindNode(input.node);
  if (node == nullptr || node->dead || !node->inquiry.open()) return;
  if (node->inquiry.Awaits(input.question, kThisHost)) node->worker_state = input.state;
  Answered(turn, *node, input.question, kThisHost, input.state == 'R' || input.state == 'D');
}

void OnWorkerHeldUp(Turn& turn, const NodeId& id, const wire::WorkerHeldUp& message) {
  Node* node = turn.FindNode(id);
  if (node == nullptr || node->dead) return;
  node->held_up_at = turn.now;
  node->worker_state = static_cast<char>(message.state);
}

void OnWorkerGone(Turn& turn, const Session& session, const SessionId& id) {
  Node* node = turn.FindNode(session.node);
  if (node == nullptr || node->session != id) return;
  node->session = SessionId();
  if (session.left) {
    LoseNode(turn, *node, "it left the cluster", true);
  } else if (!node->dead) {
    turn.ProbeNode(*node);
  }
}

void OnProbe(Turn& turn, const ProbeDone& input) {
  Node* node = turn.FindNode(input.node);
  if (node == nullptr || node->dead || node->incarnation != input.incarnation) return;
  if (!input.refused || !node->session.IsNil()) return;
  LoseNode(turn, *node, "its worker ended", true);
}

void ForgetNode(Turn& turn, const NodeId& id) {
  wire::NodeKeyed forgotten;  // without a key
  forgotten.node = id;
  turn.Append(std::move(forgotten));
}

namespace {

void ForgetAllButTheLatestDead(Turn& turn) {
  const auto& dead = turn.state.dead_nodes;
  while (dead.size() > kDeadNodesMax) ForgetNode(turn, dead.front());
}

}  // namespace

void LoseNode(Turn& turn, Node& node, const std::string& cause, bool verdict) {
  if (node.dead) return;
  const NodeId id = node.id;
  // Before the node's holdings are forgotten: who had something there.
  std::vector<GroupId> groups;
  std::vector<GroupId> inside;  // reservations of launches
  for (const auto& [lease, holding] : node.holdings) {
    const Group* group = turn.FindGroup(lease.first);
    if (group == nullptr || group->attempt != lease.second) continue;
    (holding.parent.IsNil() ? groups : inside).push_back(lease.first);
  }
  wire::NodeDied died;
  died.node = id;
  died.incarnation = node.incarnation;
  died.cause = cause;
  died.ended = verdict;
  died.heard_ns = static_cast<std::uint64_t>(node.last_heard.time_since_epoch().count());
  died.boot_id = turn.options.boot_id;
  turn.Append(std::move(died));
  const std::string text = turn.LossOf(id);
  DropWatches(turn, node);
  node.suspect = false;
  node.leaving = false;
  node.reported = false;
  node.missing = Resources();
  if (!node.session.IsNil()) {
    turn.state.sessions[node.session].node = NodeId();
    turn.Close(node.session, text);
    node.session = SessionId();
  }
  turn.Happened(fact::NodeLost{id, text, verdict, groups, inside});
  ForgetAllButTheLatestDead(turn);
  turn.state.dirty = true;
}

void OnDrainNode(Turn& turn, const Request& request, const wire::DrainNode& message) {
  Node* node = turn.FindNode(message.node);
  if (node == nullptr || node->dead) {
    turn.Refuse(request, ErrorCode::kNotFound, "no such node is alive: " + message.node.Hex());
    return;
  }
  wire::NodeDrained drained;
  drained.node = message.node;
  drained.reason = message.reason;
  turn.Append(std::move(drained));
  turn.Reply(request, wire::Ok());
}

void OnNodeLeaves(Turn& turn, Node& node) {
  node.leaving = true;
  turn.state.dirty = true;
}

void AwaitNodes(Turn& turn) {
  ForgetAllButTheLatestDead(turn);
  for (auto& [id, node] : turn.state.nodes) {
    if (node.dead) continue;
    node.last_heard = turn.now;
    turn.Arm(turn.now + turn.options.dead_after, TimerKind::kNode, id);
  }
}

void ExtendLeases(Turn& turn, Duration lag) {
  for (auto& [id, node] : turn.state.nodes) {
    node.last_heard = std::min(turn.now, node.last_heard + lag);
    if (node.held_up_at != Instant()) node.held_up_at = std::min(turn.now, node.held_up_at + lag);
    node.inquiry.Extend(lag);
  }
  for (auto& [id, owner] : turn.state.owners) owner.expires += lag;
  for (auto& [id, launch] : turn.state.launches) launch.driver_due += lag;
}

}  // namespace troupe::head
