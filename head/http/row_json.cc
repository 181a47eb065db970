#include "head/http/row_json.h"

#include <boost/json/array.hpp>
#include <boost/json/src.hpp>  // the library itself: this source alone compiles it

namespace troupe::head {
namespace {

namespace json = boost::json;

template <class Id>
std::string Hex(const Id& id) {
  return id.IsNil() ? std::string() : id.Hex();
}

json::object AmountsOf(const std::vector<wire::Resource>& resources) {
  json::object amounts;
  for (const wire::Resource& each : resources) {
    amounts[each.name] = static_cast<double>(each.ten_thousandths) / 10000;
  }
  return amounts;
}

/// The labels that people gave; the runtime's own are for placement.
json::object LabelsOf(const std::vector<wire::Label>& labels) {
  json::object all;
  for (const wire::Label& each : labels) {
    if (!each.key.starts_with("troupe.io/")) all[each.key] = each.value;
  }
  return all;
}

double SecondsOf(std::uint64_t ms) { return static_cast<double>(ms) / 1000; }

json::object FailureOf(const wire::Failure& failure) {
  return {{"rank", failure.rank},
          {"node", failure.node_name},
          {"pid", failure.pid},
          {"exit_code", failure.exit_code},
          {"signal", failure.signal},
          {"cause", failure.cause},
          {"exception_type", failure.exception_type}};
}

const char* JobStateOf(const wire::LaunchInfo& info) {
  return head::JobStateOf(info.state, info.outcome, info.failure);
}

json::array MeasuresOf(const std::vector<wire::Measure>& measures) {
  json::array all;
  for (const wire::Measure& each : measures) {
    json::object one{{"kind", wire::NameOf(each.kind)}, {"value", each.value}};
    if (!each.key.empty()) one["key"] = each.key;
    if (each.gpu >= 0) one["gpu"] = each.gpu;
    all.push_back(std::move(one));
  }
  return all;
}

std::string StateOf(const LaunchRow& row) {
  const bool over = row.info.state == wire::LaunchState::kTerminal;
  return over ? wire::NameOf(row.info.outcome) : wire::NameOf(row.info.state);
}

}  // namespace

json::object JsonOf(const NodeRow& row) {
  const wire::NodeInfo& info = row.info;
  json::array devices;
  for (const wire::Device& each : info.devices) {
    devices.push_back(json::object{{"index", each.index},
                                   {"uuid", each.uuid},
                                   {"model", each.model},
                                   {"memory_mib", each.memory_mib}});
  }
  return {{"node_id", IdOf(row)},
          {"name", info.name},
          {"state", wire::NameOf(info.state)},
          {"why", info.why},
          {"host", info.host},
          {"address", info.listen_host + ":" + std::to_string(info.listen_port)},
          {"pid", info.pid},
          {"resources", AmountsOf(info.resources)},
          {"free", AmountsOf(info.free)},
          {"labels", LabelsOf(info.labels)},
          {"devices", std::move(devices)},
          {"heard_s", SecondsOf(info.heard_ms)},
          {"python", info.python_version},
          {"zygote_ready", info.zygote_ready},
          {"measures", MeasuresOf(info.measures)}};
}

json::object JsonOf(const ActorRow& row) {
  const wire::ActorInfo& info = row.info;
  return {{"actor_id", IdOf(row)},
          {"class_name", info.class_name},
          {"name", info.name},
          {"namespace", info.namespace_},
          {"state", wire::NameOf(info.state)},
          {"node", info.node_name.empty() ? info.failure.node_name : info.node_name},
          {"node_id", Hex(info.node.IsNil() ? info.failure.node : info.node)},
          {"pid", info.address.pid != 0 ? info.address.pid : info.failure.pid},
          {"repr_name", info.address.repr_name},
          {"launch", Hex(info.launch)},
          {"restarts", info.restarts},
          {"waiting_for", info.waiting_for},
          {"cause", info.failure.cause},
          {"resources", AmountsOf(info.resources)}};
}

json::object JsonOf(const LaunchRow& row) {
  const wire::LaunchInfo& info = row.info;
  json::array nodes;
  for (const NodeId& each : info.nodes) nodes.push_back(json::string(each.Hex()));
  return {{"id", IdOf(row)},
          {"name", info.name},
          {"mode", wire::NameOf(info.mode)},
          {"state", StateOf(row)},
          {"ranks", info.ranks},
          {"ready_ranks", info.ready_ranks},
          {"attempt", info.epoch},
          {"attempts_max", info.attempts_max},
          {"priority", info.priority},
          {"preemptions", info.preemptions},
          {"submitted_s", static_cast<double>(info.submitted_us) / 1e6},
          {"duration_s", SecondsOf(info.duration_ms)},
          {"exit_code", info.exit_code},
          {"cause", info.cause},
          {"waiting_for", info.waiting_for},
          {"queue_place", info.queue_place},
          {"per_rank", AmountsOf(info.per_rank)},
          {"nodes", std::move(nodes)},
          {"job", row.job}};
}

json::object WholeJsonOf(const LaunchRow& row) {
  json::object whole = JsonOf(row);
  whole["failure"] = FailureOf(row.info.failure);
  json::array ranks;
  for (const wire::RankInfo& each : row.info.rank_infos) {
    ranks.push_back(json::object{{"rank", each.rank},
                                 {"node", each.node_name},
                                 {"node_id", Hex(each.node)},
                                 {"local_rank", each.local_rank},
                                 {"outcome", wire::NameOf(each.outcome)},
                                 {"exit_code", each.exit_code},
                                 {"cause", each.cause},
                                 {"warning", each.warning}});
  }
  whole["rank_list"] = std::move(ranks);
  return whole;
}

json::object JsonOf(const GroupRow& row) {
  const wire::GroupInfo& info = row.info;
  json::array bundles;
  for (const wire::Bundle& each : info.bundles) {
    bundles.push_back(
        json::object{{"index", each.index}, {"resources", AmountsOf(each.resources)}});
  }
  json::object places;
  for (const wire::BundlePlace& each : info.places) {
    places[std::to_string(each.index)] = each.node.Hex();
  }
  return {{"placement_group_id", IdOf(row)},
          {"name", info.name},
          {"strategy", wire::NameOf(info.strategy)},
          {"state", wire::NameOf(info.state)},
          {"launch", Hex(info.launch)},
          {"bundles", std::move(bundles)},
          {"bundles_to_node_id", std::move(places)},
          {"reason", info.reason},
          {"priority", info.priority},
          {"queue_place", info.queue_place}};
}

json::object JsonOf(const JobRow& row) {
  const wire::LaunchInfo& info = row.launch->info;
  return {{"id", row.launch->job},
          {"name", info.name},
          {"state", JobStateOf(info)},
          {"user", row.launch->user},
          {"launch", info.launch.Hex()},
          {"attempt", info.epoch},
          {"submitted_s", static_cast<double>(info.submitted_us) / 1e6},
          {"duration_s", SecondsOf(info.duration_ms)},
          {"exit_code", info.exit_code},
          {"cause", info.cause},
          {"waiting_for", info.waiting_for},
          {"queue_place", info.queue_place},
          {"resources", AmountsOf(info.per_rank)}};
}

json::object JsonOf(const wire::ClusterEvent& event, std::uint64_t incarnation) {
  return {{"event_id", std::to_string(incarnation) + "-" + std::to_string(event.number)},
          {"time_s", static_cast<double>(event.wall_us) / 1e6},
          {"severity", wire::NameOf(event.severity)},
          {"source", wire::NameOf(event.source)},
          {"message", event.message},
          {"node_id", Hex(event.node)},
          {"actor_id", Hex(event.actor)},
          {"launch", Hex(event.launch)}};
}

std::string IdOf(const NodeRow& row) { return row.info.node.Hex(); }
std::string IdOf(const ActorRow& row) { return row.info.actor.Hex(); }
std::string IdOf(const LaunchRow& row) { return row.info.launch.Hex(); }
std::string IdOf(const GroupRow& row) { return row.info.group.Hex(); }
std::string IdOf(const JobRow& row) { return row.launch->job; }

std::optional<std::string> FieldOf(const NodeRow& row, std::string_view name) {
  if (name == "state") return wire::NameOf(row.info.state);
  if (name == "name") return row.info.name;
  if (name == "host") return row.info.host;
  return std::nullopt;
}

std::optional<std::string> FieldOf(const ActorRow& row, std::string_view name) {
  if (name == "state") return wire::NameOf(row.info.state);
  if (name == "name") return row.info.name;
  if (name == "namespace") return row.info.namespace_;
  if (name == "class_name") return row.info.class_name;
  if (name == "node_id") return Hex(row.info.node);
  if (name == "launch") return Hex(row.info.launch);
  return std::nullopt;
}

std::optional<std::string> FieldOf(const LaunchRow& row, std::string_view name) {
  if (name == "state") return StateOf(row);
  if (name == "name") return row.info.name;
  return std::nullopt;
}

std::optional<std::string> FieldOf(const GroupRow& row, std::string_view name) {
  if (name == "state") return wire::NameOf(row.info.state);
  if (name == "name") return row.info.name;
  if (name == "launch") return Hex(row.info.launch);
  return std::nullopt;
}

std::optional<std::string> FieldOf(const JobRow& row, std::string_view name) {
  static const LaunchRow none;
  const LaunchRow& launch = row.launch == nullptr ? none : *row.launch;
  if (name == "state") return JobStateOf(launch.info);
  if (name == "name") return launch.info.name;
  if (name == "user") return launch.user;
  return std::nullopt;
}

}  // namespace troupe::head
