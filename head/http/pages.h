// Pages of the lists as JSON: what `GET /api/v1/actors?state=alive&limit=100` answers.
//
// Pure. A page is `{"items": [...], "next": CURSOR or null, "total": N, "time_us": T}`; `total`
// counts the rows in memory that pass the filter. A cursor stays good while rows come and go: it is
// the id of the last row that was looked at.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "head/http/lists.h"
#include "head/http/message.h"

namespace troupe::head {

inline constexpr std::size_t kPageRowsMax = 1000;
inline constexpr std::size_t kPageRows = 100;

struct Paging {
  std::size_t limit = kPageRows;
  std::string after;
  std::vector<std::pair<std::string, std::string>> filter;
};
struct PagingOrRefusal {
  Paging paging;
  std::optional<HttpResponse> refusal;  // why the parameters cannot be meant
};
PagingOrRefusal ReadPaging(const HttpRequest& request);

/// Launches that are in memory no more, in the order of the cursor. Those behind `upto` were not
/// looked at; empty: all were.
struct Earlier {
  std::vector<LaunchRow> rows;
  std::string upto;
};

/// Answers `request` from a list. Parameters: `limit`, `after`, and fields of a row that must be
/// equal.
HttpResponse PageOf(const ListView<NodeRow>& view, const HttpRequest& request);
HttpResponse PageOf(const ListView<ActorRow>& view, const HttpRequest& request);
HttpResponse PageOf(const ListView<LaunchRow>& view, const HttpRequest& request,
                    const Earlier& earlier);
HttpResponse PageOf(const ListView<GroupRow>& view, const HttpRequest& request);
HttpResponse PageOf(const ListView<EventRow>& view, const HttpRequest& request);
/// Only the launches that are jobs, as jobs.
HttpResponse JobsPageOf(const ListView<LaunchRow>& view, const HttpRequest& request,
                        const Earlier& earlier);

/// Returns a row, by its id or by how that begins. 404: none, or several.
HttpResponse RowWith(const ListView<NodeRow>& view, const std::string& id);
HttpResponse RowWith(const ListView<ActorRow>& view, const std::string& id);
HttpResponse RowWith(const ListView<LaunchRow>& view, const std::string& id,
                     const Earlier& earlier);
HttpResponse RowWith(const ListView<GroupRow>& view, const std::string& id);
HttpResponse JobWith(const ListView<LaunchRow>& view, const std::string& id,
                     const Earlier& earlier);

/// Returns the targets for Prometheus's http_sd_configs: where the cluster's metrics are.
HttpResponse TargetsOf(const std::string& address, const std::string& cluster);

/// Returns an event as a line of JSON.
std::string EventJson(const wire::ClusterEvent& event, std::uint64_t incarnation);

}  // namespace troupe::head
