#include "head/http/pages.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <utility>

#include "head/http/json_response.h"
#include "head/http/numbers.h"
#include "head/http/row_json.h"

namespace troupe::head {
namespace {

namespace json = boost::json;

std::optional<std::uint64_t> NumberOf(const std::string& text) {
  std::uint64_t number = 0;
  if (!ReadWhole(text, &number)) return std::nullopt;
  return number;
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

/// Rows of two lists in the order of their ids, each once: that of the first where both have it.
template <class Row>
class Merged {
 public:
  Merged(const std::vector<Row>& rows, const std::vector<Row>& earlier)
      : row_(rows.begin()), end_(rows.end()), earlier_(earlier.begin()), last_(earlier.end()) {}

  /// Null: there are no more. `id` is the row's, `in_memory` whether it is of the first list.
  const Row* Next(std::string* id, bool* in_memory) {
    const std::string own = row_ == end_ ? "" : IdOf(*row_);
    while (earlier_ != last_ && own == IdOf(*earlier_)) ++earlier_;
    if (row_ == end_ && earlier_ == last_) return nullptr;
    *in_memory = earlier_ == last_ || (row_ != end_ && own < IdOf(*earlier_));
    const Row* next = *in_memory ? &*row_++ : &*earlier_++;
    *id = IdOf(*next);
    return next;
  }

 private:
  typename std::vector<Row>::const_iterator row_, end_, earlier_, last_;
};

/// Rows are in the order of their ids, which the cursor is one of. `upto`: as in Earlier.
template <class View, class Row>
HttpResponse PageOfRows(const View& view, const std::vector<Row>& rows, const HttpRequest& request,
                        const std::vector<Row>& earlier = {}, const std::string& upto = {}) {
  const auto [paging, refusal] = ReadPaging(request);
  if (refusal) return *refusal;
  json::array items;
  json::value next;
  std::size_t total = 0;
  std::string last;
  for (const auto& [name, value] : paging.filter) {
    if (!FieldOf(Row{}, name)) return NoSuchField(name);
  }
  if (!upto.empty()) next = json::string(upto);
  Merged<Row> merged(rows, earlier);
  std::string id;
  bool in_memory = false;
  bool full = false;
  while (const Row* row = merged.Next(&id, &in_memory)) {
    if (!Passes(*row, paging.filter)) continue;
    if (in_memory) ++total;
    if (full || (!paging.after.empty() && id <= paging.after)) continue;
    if (!upto.empty() && id > upto) continue;
    if (items.size() == paging.limit) {
      next = json::string(last);
      full = true;
      continue;
    }
    items.push_back(JsonOf(*row));
    last = id;
  }
  return JsonResponse(Around(view, std::move(items), std::move(next), total));
}

template <class Row, class Whole>
HttpResponse RowOfRows(const std::vector<Row>& rows, const std::string& id, Whole whole,
                       const std::vector<Row>& earlier = {}) {
  const Row* found = nullptr;
  for (const auto* each : {&rows, &earlier}) {
    for (const Row& row : *each) {
      const std::string own = IdOf(row);
      if (own == id) return JsonResponse(whole(row));
      if (id.empty() || !own.starts_with(id) || (found != nullptr && own == IdOf(*found))) continue;
      if (found != nullptr) return ErrorResponse(404, "several ids begin so: give more of it");
      found = &row;
    }
  }
  if (found == nullptr) return ErrorResponse(404, "there is none with this id, or it is forgotten");
  return JsonResponse(whole(*found));
}

template <class Row>
HttpResponse RowOfRows(const std::vector<Row>& rows, const std::string& id) {
  return RowOfRows(rows, id, [](const Row& row) { return JsonOf(row); });
}

std::vector<JobRow> JobsOf(const std::vector<LaunchRow>& rows) {
  std::vector<JobRow> jobs;
  for (const LaunchRow& each : rows) {
    if (!each.job.empty()) jobs.push_back({&each});
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const JobRow& a, const JobRow& b) { return a.launch->job < b.launch->job; });
  return jobs;
}

}  // namespace

PagingOrRefusal ReadPaging(const HttpRequest& request) {
  PagingOrRefusal read;
  for (const auto& [name, value] : request.query) {
    if (name == "after") {
      read.paging.after = value;
    } else if (name == "limit") {
      const std::optional<std::uint64_t> limit = NumberOf(value);
      if (!limit || *limit == 0 || *limit > kPageRowsMax) {
        read.refusal = ErrorResponse(400, "limit must be a number from 1 to 1000");
        return read;
      }
      read.paging.limit = *limit;
    } else {
      read.paging.filter.emplace_back(name, value);
    }
  }
  return read;
}

HttpResponse PageOf(const ListView<NodeRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse PageOf(const ListView<ActorRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse PageOf(const ListView<LaunchRow>& view, const HttpRequest& request,
                    const Earlier& earlier) {
  return PageOfRows(view, view.rows, request, earlier.rows, earlier.upto);
}
HttpResponse PageOf(const ListView<GroupRow>& view, const HttpRequest& request) {
  return PageOfRows(view, view.rows, request);
}
HttpResponse JobsPageOf(const ListView<LaunchRow>& view, const HttpRequest& request,
                        const Earlier& earlier) {
  return PageOfRows(view, JobsOf(view.rows), request, JobsOf(earlier.rows), earlier.upto);
}

HttpResponse PageOf(const ListView<EventRow>& view, const HttpRequest& request) {
  const auto [paging, refusal] = ReadPaging(request);
  if (refusal) return *refusal;
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
  return JsonResponse(Around(view, std::move(items), std::move(next), view.rows.size()));
}

HttpResponse RowWith(const ListView<NodeRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse RowWith(const ListView<ActorRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse RowWith(const ListView<LaunchRow>& view, const std::string& id,
                     const Earlier& earlier) {
  return RowOfRows(
      view.rows, id, [](const LaunchRow& row) { return WholeJsonOf(row); }, earlier.rows);
}
HttpResponse RowWith(const ListView<GroupRow>& view, const std::string& id) {
  return RowOfRows(view.rows, id);
}
HttpResponse JobWith(const ListView<LaunchRow>& view, const std::string& id,
                     const Earlier& earlier) {
  return RowOfRows(
      JobsOf(view.rows), id, [](const JobRow& row) { return JsonOf(row); }, JobsOf(earlier.rows));
}

HttpResponse TargetsOf(const std::string& address, const std::string& cluster) {
  return JsonResponse(json::array{
      json::object{{"targets", json::array{address}},
                   {"labels", json::object{{"__scheme__", "https"}, {"cluster", cluster}}}}});
}

std::string EventJson(const wire::ClusterEvent& event, std::uint64_t incarnation) {
  return ValidUtf8(json::serialize(JsonOf(event, incarnation)));
}

}  // namespace troupe::head
