#include "placement/fabric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>

namespace troupe::placement {
namespace {

constexpr std::array<std::string_view, 2> kLayers = {"InfiniBand", "Ethernet"};
constexpr std::string_view kActive = "ACTIVE";

std::vector<std::string_view> Split(std::string_view text, char at, std::size_t count_max) {
  std::vector<std::string_view> parts;
  while (!text.empty() && parts.size() < count_max) {
    const std::size_t end = std::min(text.find(at), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <class Number>
Number NumberOf(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string Field(std::string_view text) { return text == "-" ? "" : std::string(text); }

// Returns a name in the form of a label: between spaces, as other characters would end it.
std::string Word(std::string_view text) {
  std::string word(text);
  std::replace_if(
      word.begin(), word.end(),
      [](char c) { return c <= ' ' || c >= 0x7f || c == ';' || c == ',' || c == '='; }, '_');
  return word.empty() ? "-" : word;
}

std::vector<std::string> Rest(const std::vector<std::string_view>& fields, std::size_t from) {
  std::vector<std::string> rest;
  for (std::size_t i = from; i < fields.size(); ++i) {
    if (fields[i] != "-") rest.emplace_back(fields[i]);
  }
  return rest;
}

void TakeRecord(const std::vector<std::string_view>& fields, Fabric* fabric) {
  if (fields.size() >= 4 && fields[0] == "if") {
    fabric->interfaces.push_back(
        {Field(fields[1]), fields[2] == "up", NumberOf<std::uint64_t>(fields[3]), Rest(fields, 4)});
  } else if (fields.size() >= 7 && fields[0] == "rdma") {
    fabric->ports.push_back({Field(fields[1]), Field(fields[2]), Field(fields[3]),
                             NumberOf<std::uint64_t>(fields[4]), Field(fields[5]), Field(fields[6]),
                             Rest(fields, 7)});
  } else if (fields.size() >= 4 && fields[0] == "nvlink") {
    fabric->nvlinks.push_back(
        {Field(fields[1]), NumberOf<std::uint32_t>(fields[2]), NumberOf<std::uint32_t>(fields[3])});
  } else if (fields.size() >= 2 && fields[0] == "gpudirect") {
    fabric->gpudirect = Field(fields[1]);
  }
}

using Networks = std::set<std::string>;

Networks NetworksOf(const Fabric& node, std::string_view layer) {
  Networks networks;
  for (const RdmaPort& port : node.ports) {
    if (port.state == kActive && port.layer == layer)
      networks.insert(port.networks.begin(), port.networks.end());
  }
  return networks;
}

Networks CommonNetworks(const std::vector<Fabric>& nodes, std::string_view layer) {
  Networks common = NetworksOf(nodes.front(), layer);
  for (std::size_t i = 1; i < nodes.size() && !common.empty(); ++i) {
    const Networks there = NetworksOf(nodes[i], layer);
    std::erase_if(common, [&](const std::string& each) { return there.count(each) == 0; });
  }
  return common;
}

std::vector<const RdmaPort*> PortsIn(const Fabric& node, std::string_view layer,
                                     const Networks& common) {
  std::vector<const RdmaPort*> ports;
  for (const RdmaPort& port : node.ports) {
    const bool in = std::any_of(port.networks.begin(), port.networks.end(),
                                [&](const std::string& each) { return common.count(each) > 0; });
    if (port.state == kActive && port.layer == layer && in) ports.push_back(&port);
  }
  return ports;
}

// Returns the speed of the node with least, in Mbit/s.
std::uint64_t Least(const std::vector<std::vector<const RdmaPort*>>& nodes) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const auto& ports : nodes) {
    std::uint64_t sum = 0;
    for (const RdmaPort* port : ports) sum += port->mbit_s;
    least = std::min(least, sum);
  }
  return least;
}

}  // namespace

std::string FabricText(const Fabric& fabric) {
  std::string text;
  for (const NetworkInterface& each : fabric.interfaces) {
    text += "if " + Word(each.name) + (each.up ? " up " : " down ") + std::to_string(each.mbit_s);
    for (const std::string& address : each.addresses) text += " " + Word(address);
    text += ";";
  }
  for (const RdmaPort& each : fabric.ports) {
    text += "rdma " + Word(each.name) + " " + Word(each.layer) + " " + Word(each.state) + " " +
            std::to_string(each.mbit_s) + " " + Word(each.width) + " " + Word(each.interface);
    for (const std::string& network : each.networks) text += " " + Word(network);
    text += ";";
  }
  for (const NvLinks& each : fabric.nvlinks) {
    text += "nvlink " + Word(each.gpus) + " " + std::to_string(each.links) + " " +
            std::to_string(each.mbyte_s) + ";";
  }
  if (!fabric.gpudirect.empty()) text += "gpudirect " + Word(fabric.gpudirect) + ";";
  return text;
}

Fabric ParseFabric(std::string_view text) {
  Fabric fabric;
  for (const std::string_view record : Split(text, ';', kFabricRecordsMax)) {
    TakeRecord(Split(record, ' ', kFabricFieldsMax), &fabric);
  }
  return fabric;
}

std::vector<std::string> ReachingPorts(const std::vector<Fabric>& nodes) {
  std::vector<std::string> values(nodes.size());
  if (nodes.size() < 2) return values;
  std::vector<std::vector<const RdmaPort*>> best;
  for (const std::string_view layer : kLayers) {
    const Networks common = CommonNetworks(nodes, layer);
    if (common.empty()) continue;
    std::vector<std::vector<const RdmaPort*>> ports;
    for (const Fabric& node : nodes) ports.push_back(PortsIn(node, layer, common));
    if (best.empty() || Least(ports) > Least(best)) best = std::move(ports);
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const RdmaPort* port : best[i]) {
      values[i] += (values[i].empty() ? "=" : ",") + port->name;
    }
  }
  return values;
}

}  // namespace troupe::placement
