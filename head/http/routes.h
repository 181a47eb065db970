// The routes of the head's HTTP server, each with the message whose row in
// runtime/wire/role_table.h says who may ask for it.
//
// Pure data and functions. A route without a message answers everybody, before any authentication:
// it may say one word and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::head {

enum class RouteId : std::uint8_t {
  kHealth,
  kReady,
  kMetrics,
  kTargets,
  kNodes,
  kActors,
  kLaunches,
  kGroups,
  kJobs,
  kEvents,
  kStream,
  kSubmitJob,
  kStopJob,
  kStopLaunch,
  kLaunchLog,
  kJobLog,
  kActorLog,
};

struct HttpRoute {
  std::string_view method;  // GET answers HEAD, too
  std::string_view path;    // "{id}" stands for one segment
  RouteId id;
  std::optional<std::size_t> kind;  // a message's number
};

const std::vector<HttpRoute>& Routes();
/// True for a route that answers with a log, or a stream of one.
inline bool IsLog(RouteId id) {
  return id == RouteId::kLaunchLog || id == RouteId::kJobLog || id == RouteId::kActorLog;
}
/// Returns true if the route changes something: those take a body, others none.
inline bool Acts(const HttpRoute& route) { return route.method == "POST"; }

struct RouteMatch {
  const HttpRoute* route = nullptr;
  std::string id;  // text for "{id}"
  std::string allow;  // the methods there are for this path, where the request's is none of them
};
RouteMatch FindRoute(std::string_view method, std::string_view path);

/// Returns true if the role table lets a peer of this role ask for `route`.
bool MayAsk(const HttpRoute& route, wire::Role role);

}  // namespace troupe::head
