// The request, the nodes, and the answer of placement: plain values.
//
// View: the head's, at one moment. A NodeView is a copy: planning changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/labels.h"
#include "placement/resources.h"
#include "runtime/base/ids.h"

namespace troupe::placement {

enum class Strategy : std::uint8_t { kPack, kSpread, kStrictPack, kStrictSpread };
/// "PACK", as users write it.
const char* NameOf(Strategy strategy);

/// Labels that say where a node stands, widest first. Nodes with equal values up to a level are one
/// domain of it; a host is the narrowest domain, and needs no label.
using Levels = std::vector<std::string>;
/// block, rack, nvlink_domain.
const Levels& DefaultLevels();

struct NodeView {
  NodeId id;
  std::string name;
  Resources total;
  Resources free;
  Labels labels;
  /// Why nothing new goes there just now ("suspect: not heard for 2.3 s"); empty: it may.
  std::string closed;

  friend bool operator==(const NodeView&, const NodeView&) = default;
};

struct Request {
  std::vector<Resources> bundles;
  Strategy strategy = Strategy::kPack;
  /// Every node used must hold this.
  Selector labels;
  /// Instead of `labels`, in this order, when nothing can be placed with those.
  std::vector<Selector> fallbacks;
  /// Selectors of the bundles, one for each, beside `labels`; or none at all.
  std::vector<Selector> bundle_labels;
  /// A level: all bundles go into one domain of it, the smallest that holds them; empty: anywhere.
  std::string level;
  /// True if the level must be kept; false: several domains, as few as will do, are better than
  /// waiting.
  bool level_required = false;
  /// Nil: any. Otherwise only this node, or, when `node_soft`, this one if it can.
  NodeId node;
  bool node_soft = false;

  friend bool operator==(const Request&, const Request&) = default;
};

/// The node of each bundle, by the bundle's position in the request. Equal bundles are in the order
/// of ranks: a node's are consecutive, near nodes follow each other.
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
