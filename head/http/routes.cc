#include "head/http/routes.h"

#include "head/core/nodes/roles.h"
#include "runtime/wire/role_table.h"

namespace troupe::head {
namespace {

template <class Message>
constexpr std::size_t kNumberOf = wire::KindOf<wire::BodyFamily, Message>::value;

constexpr std::string_view kIdSegment = "{id}";

/// Returns true if `path` is the route's; `id` receives the text for "{id}".
bool IsAt(const HttpRoute& route, std::string_view path, std::string* id) {
  const std::size_t at = route.path.find(kIdSegment);
  if (at == std::string_view::npos) return path == route.path;
  const std::string_view front = route.path.substr(0, at);
  const std::string_view back = route.path.substr(at + kIdSegment.size());
  if (!path.starts_with(front) || !path.ends_with(back)) return false;
  if (path.size() <= front.size() + back.size()) return false;
  const std::string_view segment =
      path.substr(front.size(), path.size() - front.size() - back.size());
  if (segment.find('/') != std::string_view::npos) return false;
  *id = segment;
  return true;
}

}  // namespace

const std::vector<HttpRoute>& Routes() {
  static const std::vector<HttpRoute> routes = {
      {"GET", "/healthz", RouteId::kHealth, std::nullopt},
      {"GET", "/readyz", RouteId::kReady, std::nullopt},
      {"GET", "/metrics", RouteId::kMetrics, kNumberOf<wire::GetStatus>},
      {"GET", "/api/v1/prometheus-sd", RouteId::kTargets, kNumberOf<wire::GetStatus>},
      {"GET", "/api/v1/nodes", RouteId::kNodes, kNumberOf<wire::GetStatus>},
      {"GET", "/api/v1/nodes/{id}", RouteId::kNodes, kNumberOf<wire::GetStatus>},
      {"GET", "/api/v1/actors", RouteId::kActors, kNumberOf<wire::ListActors>},
      {"GET", "/api/v1/actors/{id}", RouteId::kActors, kNumberOf<wire::ListActors>},
      {"GET", "/api/v1/launches", RouteId::kLaunches, kNumberOf<wire::ListLaunches>},
      {"GET", "/api/v1/launches/{id}", RouteId::kLaunches, kNumberOf<wire::GetLaunch>},
      {"GET", "/api/v1/jobs", RouteId::kJobs, kNumberOf<wire::ListLaunches>},
      {"GET", "/api/v1/jobs/{id}", RouteId::kJobs, kNumberOf<wire::GetLaunch>},
      {"GET", "/api/v1/placement_groups", RouteId::kGroups, kNumberOf<wire::ListGroups>},
      {"GET", "/api/v1/placement_groups/{id}", RouteId::kGroups, kNumberOf<wire::GetGroup>},
      {"GET", "/api/v1/events", RouteId::kEvents, kNumberOf<wire::ListEvents>},
      {"POST", "/api/v1/jobs", RouteId::kSubmitJob, kNumberOf<wire::SubmitLaunch>},
      {"POST", "/api/v1/jobs/{id}/stop", RouteId::kStopJob, kNumberOf<wire::CancelLaunch>},
      {"POST", "/api/v1/launches/{id}/stop", RouteId::kStopLaunch, kNumberOf<wire::CancelLaunch>},
      {"GET", "/api/v1/logs/launches/{id}", RouteId::kLaunchLog, kNumberOf<wire::ReadLog>},
      {"GET", "/api/v1/logs/jobs/{id}", RouteId::kJobLog, kNumberOf<wire::ReadLog>},
      {"GET", "/api/v1/logs/actors/{id}", RouteId::kActorLog, kNumberOf<wire::ReadLog>},
      {"GET", "/api/v1/stream", RouteId::kStream, kNumberOf<wire::ListEvents>},
  };
  return routes;
}

RouteMatch FindRoute(std::string_view method, std::string_view path) {
  const std::string_view asked = method == "HEAD" ? "GET" : method;
  RouteMatch match;
  for (const HttpRoute& route : Routes()) {
    if (!IsAt(route, path, &match.id)) continue;
    if (route.method == asked) {
      match.route = &route;
      return match;
    }
    match.allow += match.allow.empty() ? "" : ", ";
    match.allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return match;
}

bool MayAsk(const HttpRoute& route, wire::Role role) {
  if (!route.kind) return true;
  return wire::MayOf(SpeakerOf(role, false), *route.kind) != May::kNever;
}

}  // namespace troupe::head
