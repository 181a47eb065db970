#include "head/http/pages.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "head/http/row_json.h"

namespace troupe::head {
namespace {

namespace json = boost::json;

struct Paging {
  std::size_t limit = kPageRows;
  std::string after;
  std::vector<std::pair<std::string, std::string>> filter;
};

HttpResponse Json(const json::value& value) {
  HttpResponse response;
  response.type = kJsonType;
  response.body = ValidUtf8(json::serialize(value)) + "\n";
  return response;
}

std::optional<std::uint64_t> NumberOf(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The parameters of a page, or why they cannot be meant.
std::optional<HttpResponse> ReadPaging(const HttpRequest& request, Paging* paging) {
  for (const auto& [name, value] : request.query) {
    if (name == "after") {
      paging->after = value;
    } else if (name == "limit") {
      const std::optional<std::uint64_t> limit = NumberOf(value);
      if (!limit || *limit == 0 || *limit > kPageRowsMax) {
        return ErrorResponse(400, "limit must be a number from 1 to 1000");
      }
      paging->limit = *limit;
    } else {
      paging->filter.emplace_back(name, value);
    }
  }
  return std::nullopt;
}

HttpResponse NoSuchField(const std::string& name) {
  return ErrorResponse(400, "these rows cannot be filtered by '" + name + "'");
}

template <class View>
json::object Around(const View& view, json::array items, json::value next, std::size_t total) {
  return {{"items", std::move(items)},
          {"next", std::move(next)},
          {"total", total},
          {"time_s", static_cast<double>(view.wall_us) / 1e6}};
}

/// Rows are in the order of their ids, which the cursor is one of.
template <class View, class Row>
HttpResponse PageOfRows(const View& view, const std::vector<Row>& rows,
                        const HttpRequest& request) {
  Paging paging;
  if (auto refusal = ReadPaging(request, &paging)) return *std::move(refusal);
  json::array items;
  json::value next;
  std::size_t total = 0;
  std::string last;
  for (const auto& [name, value] : paging.filter) {
    if (rows.empty() ? !FieldOf(Row{}, name) : !FieldOf(rows.front(), name))
      return NoSuchField(name);
  }
  for (const Row& row : rows) {
    bool fits = true;
    for (const auto& [name, value] : paging.filter) fits = fits && FieldOf(row, name) == value;
    if (!fits) continue;
    ++total;
    std::string id = IdOf(row);
    if (!paging.after.empty() && id <= paging.after) continue;
    if (items.size() == paging.limit) {
      if (next.is_null()) next = json::string(last);
      continue;
    }
    items.push_back(JsonOf(row));
    last = std::move(id);
  }
  return Json(Around(view, std::move(items), std::move(next), total));
}

template <class Row, class Whole>
HttpResponse RowOfRows(const std::vector<Row>& rows, const std::string& id, Whole whole) {
  const Row* found = nullptr;
  for (const Row& row : rows) {
    const std::string own = IdOf(row);
    if (own == id) return Json(whole(row));
    if (id.empty() || !own.starts_with(id)) continue;
    if (found != nullptr) return ErrorResponse(404, "several ids begin so: give more of it");
    found = &row;
  }
  if (found == nullptr) return ErrorResponse(404, "there is none with this id, or it is forgotten");
  return Json(whole(*found));
}

template <class Row>
HttpResponse RowOfRows(const std::vector<Row>& rows, const std::string& id) {
  return RowOfRows(rows, id, [](const Row& row) { return JsonOf(row); });
}

std::vector<JobRow> JobsOf(const ListView<LaunchRow>& view) {
  std::vector<JobRow> jobs;
  for (const LaunchRow& each : view.rows) {
    if (!each.job.empty()) jobs.push_back({&each});
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const JobRow& a, const JobRow& b) { return a.launch->job < b.launch->job; });
  return jobs;
}

}  // namespace

HttpResponse PageOf(const ListView<NodeRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse PageOf(const ListView<ActorRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse PageOf(const ListView<LaunchRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse PageOf(const ListView<GroupRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse JobsPageOf(const ListView<LaunchRow>& view, const HttpRequest& request) {
  return PageOfRows(view, JobsOf(view), request);
}

HttpResponse PageOf(const ListView<EventRow>& view, const HttpRequest& request) {
  Paging paging;
  if (auto refusal = ReadPaging(request, &paging)) return *std::move(refusal);
  if (!paging.filter.empty()) return NoSuchField(paging.filter.front().first);
  const std::optional<std::uint64_t> after = paging.after.empty() ? 0 : NumberOf(paging.after);
  if (!after) return ErrorResponse(400, "after must be a number of an event");
  json::array items;
  json::value next;
  for (const EventRow& row : view.rows) {
    if (row.event.number <= *after) continue;
    if (items.size() == paging.limit) {
      next = json::string(std::to_string(row.event.number - 1));
      break;
    }
    items.push_back(JsonOf(row.event, view.incarnation));
  }
  return Json(Around(view, std::move(items), std::move(next), view.rows.size()));
}

HttpResponse RowWith(const ListView<NodeRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse RowWith(const ListView<ActorRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse RowWith(const ListView<LaunchRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id, [](const LaunchRow& row) { return WholeJsonOf(row); });
}
HttpResponse RowWith(const ListView<GroupRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse JobWith(const ListView<LaunchRow>& view, const std::string& id) {
  return RowOfRows(JobsOf(view), id);
}

HttpResponse TargetsOf(const std::string& address, const std::string& cluster) {
  return Json(json::array{
      json::object{{"targets", json::array{address}},
                   {"labels", json::object{{"__scheme__", "https"}, {"cluster", cluster}}}}});
}

std::string EventJson(const wire::ClusterEvent& event, std::uint64_t incarnation) {
  return ValidUtf8(json::serialize(JsonOf(event, incarnation)));
}

}  // namespace troupe::head
