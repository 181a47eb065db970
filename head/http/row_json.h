// Rows of the lists as JSON objects. The names of fields are those of `troupe.state`.
//
// Pure. FieldOf gives a field that a filter may ask for, as text; nullopt: there is none of that
// name.
#pragma once

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "head/http/lists.h"

namespace troupe::head {

/// A launch that is a job, seen as such.
struct JobRow {
  const LaunchRow* launch = nullptr;
};

boost::json::object JsonOf(const NodeRow& row);
boost::json::object JsonOf(const ActorRow& row);
boost::json::object JsonOf(const LaunchRow& row);
boost::json::object JsonOf(const GroupRow& row);
boost::json::object JsonOf(const JobRow& row);
boost::json::object JsonOf(const wire::ClusterEvent& event, std::uint64_t incarnation);
/// With what a list leaves out: each rank of a launch.
boost::json::object WholeJsonOf(const LaunchRow& row);

std::string IdOf(const NodeRow& row);
std::string IdOf(const ActorRow& row);
std::string IdOf(const LaunchRow& row);
std::string IdOf(const GroupRow& row);
std::string IdOf(const JobRow& row);

std::optional<std::string> FieldOf(const NodeRow& row, std::string_view name);
std::optional<std::string> FieldOf(const ActorRow& row, std::string_view name);
std::optional<std::string> FieldOf(const LaunchRow& row, std::string_view name);
std::optional<std::string> FieldOf(const GroupRow& row, std::string_view name);
std::optional<std::string> FieldOf(const JobRow& row, std::string_view name);

/// Returns true if the row has all these fields with these values.
template <class Row>
bool Passes(const Row& row, const std::vector<std::pair<std::string, std::string>>& filter) {
  return std::all_of(filter.begin(), filter.end(), [&](const auto& each) {
    return FieldOf(row, each.first) == each.second;
  });
}

}  // namespace troupe::head
