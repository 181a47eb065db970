#include "head/http/routes.h"

#include "head/core/roles.h"
#include "runtime/wire/role_table.h"

namespace troupe::head {
namespace {

template <class Message>
constexpr std::size_t kNumberOf = wire::KindOf<wire::BodyFamily, Message>::value;

}  // namespace

const std::vector<HttpRoute>& Routes() {
  static const std::vector<HttpRoute> routes = {
      {"GET", "/healthz", RouteId::kHealth, std::nullopt},
      {"GET", "/readyz", RouteId::kReady, std::nullopt},
      {"GET", "/metrics", RouteId::kMetrics, kNumberOf<wire::GetStatus>},
  };
  return routes;
}

RouteMatch FindRoute(std::string_view method, std::string_view path) {
  const std::string_view asked = method == "HEAD" ? "GET" : method;
  RouteMatch match;
  for (const HttpRoute& route : Routes()) {
    if (route.path != path) continue;
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
