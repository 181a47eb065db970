// What is to be placed, on what, and the answer: plain values.
//
// View: the head's, at one moment. A NodeView is a copy: planning changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/resources.h"
#include "runtime/base/ids.h"

namespace troupe::placement {

enum class Strategy : std::uint8_t { kPack, kSpread, kStrictPack, kStrictSpread };
/// "PACK", as users write it.
const char* NameOf(Strategy strategy);

struct NodeView {
  NodeId id;
  std::string name;
  Resources total;
  Resources free;
  std::map<std::string, std::string> labels;
  /// Why nothing new goes there just now ("suspect: not heard for 2.3 s"); empty: it may.
  std::string closed;
};

struct Request {
  std::vector<Resources> bundles;
  Strategy strategy = Strategy::kPack;
  /// Every node used must carry these; values compare without regard to case.
  std::map<std::string, std::string> labels;
  /// Nil: any. Otherwise only this node, or, when `node_soft`, this one if it can.
  NodeId node;
  bool node_soft = false;
};

/// The node of each bundle, by the bundle's position in the request.
struct Plan {
  std::vector<NodeId> nodes;
};

/// Ranks on one node: `count` consecutive ranks, in the order of Gang::parts.
struct GangPart {
  NodeId node;
  std::uint32_t count = 0;
};
struct Gang {
  std::vector<GangPart> parts;
};

}  // namespace troupe::placement
