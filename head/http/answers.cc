#include "head/http/answers.h"

#include <algorithm>
#include <utility>

#include "head/http/metrics.h"
#include "head/http/pages.h"
#include "head/http/row_json.h"

namespace troupe::head {
namespace {

using async::Task;

// The parts of Refreshed's constructor that are the same for all views.
template <class View, class MakeSlice>
std::shared_ptr<Refreshed<View>> Watch(const async::Executor& own, const HeadSide& head,
                                       MakeSlice make) {
  return std::make_shared<Refreshed<View>>(own, head.executor, head.clock, std::move(make));
}

template <class Row, class Id, class Entry>
std::shared_ptr<Refreshed<ListView<Row>>> WatchList(const async::Executor& own,
                                                    const HeadSide& head,
                                                    const std::map<Id, Entry> State::* table) {
  return Watch<ListView<Row>>(own, head, [&core = head.core, &clock = head.clock, table] {
    return Lister<Row, Id, Entry>(core, clock, table);
  });
}

HttpResponse HeldUp(const Status& status) { return ErrorResponse(503, MessageOf(status)); }

HttpResponse Text(std::string type, std::string body) {
  HttpResponse response;
  response.type = std::move(type);
  response.body = std::move(body);
  return response;
}

bool CopyEvents(const State& state, std::uint64_t wall_us, ListView<EventRow>& view) {
  for (const wire::ClusterEvent& each : state.history.notes()) view.rows.push_back({each});
  view.incarnation = state.incarnation;
  view.wall_us = wall_us;
  return true;
}

// The archive has nothing to add to a whole id that is in memory.
bool HasLaunch(const ListView<LaunchRow>& view, const std::string& id) {
  return !id.empty() && std::any_of(view.rows.begin(), view.rows.end(),
                                    [&](const LaunchRow& row) { return IdOf(row) == id; });
}
bool HasJob(const ListView<LaunchRow>& view, const std::string& id) {
  return !id.empty() && std::any_of(view.rows.begin(), view.rows.end(),
                                    [&](const LaunchRow& row) { return row.job == id; });
}

/// The row with this id, or the only one whose id begins so; `earlier` are behind those of `view`.
template <class Row, class IdOfRow>
StatusOr<Row> OnlyOne(const ListView<Row>& view, const std::vector<Row>& earlier,
                      const std::string& id, IdOfRow id_of) {
  const Row* found = nullptr;
  for (const std::vector<Row>* rows : {&view.rows, &earlier}) {
    for (const Row& row : *rows) {
      const std::string own = id_of(row);
      if (own == id && !id.empty()) return row;
      if (id.empty() || !own.starts_with(id) || (found != nullptr && own == id_of(*found)))
        continue;
      if (found != nullptr)
        return MakeError(ErrorCode::kNotFound, "several ids begin so: give more of it");
      found = &row;
    }
  }
  if (found != nullptr) return *found;
  return MakeError(ErrorCode::kNotFound, "there is none with this id, or it is forgotten");
}

}  // namespace

Answers::Answers(const async::Executor& own, HeadSide head)
    : head_(std::move(head)),
      pulse_(Watch<Pulse>(own, head_,
                          [&core = head_.core] {
                            return [&core](Pulse& pulse) {
                              pulse.read_only = core.state().read_only;
                              return true;
                            };
                          })),
      totals_(Watch<Totals>(own, head_,
                            [head = &head_] {
                              return [head, cursor = CountCursor()](Totals& totals) mutable {
                                Turn turn = head->core.TurnToLook(head->clock.Now(),
                                                                  head->clock.WallTimeUs());
                                if (!CountSome(turn, &cursor, &totals)) return false;
                                totals.shell = head->watch.figures();
                                return true;
                              };
                            })),
      nodes_(WatchList<NodeRow>(own, head_, &State::nodes)),
      actors_(WatchList<ActorRow>(own, head_, &State::actors)),
      launches_(WatchList<LaunchRow>(own, head_, &State::launches)),
      groups_(WatchList<GroupRow>(own, head_, &State::groups)),
      events_(Watch<ListView<EventRow>>(own, head_, [head = &head_] {
        return [head](ListView<EventRow>& view) {
          return CopyEvents(head->core.state(), head->clock.WallTimeUs(), view);
        };
      })),
      deleted_jobs_(Watch<DeletedJobs>(
          own, head_, [&core = head_.core] { return DeletedJobsLister(core.state()); })),
      earlier_(head_.read_archive, head_.core, head_.clock) {}

Task<HttpResponse> Answers::Tell(RouteMatch match, const HttpRequest& request) {
  switch (match.route->id) {
    case RouteId::kHealth:
    case RouteId::kReady:
      co_return co_await TellPulse(match.route->id, request.no_cache);
    case RouteId::kMetrics:
      co_return co_await TellMetrics(request);
    case RouteId::kTargets:
      co_return co_await TellTargets(request);
    case RouteId::kNodes:
      co_return co_await TellList<NodeRow>(nodes_, request, match.id);
    case RouteId::kActors:
      co_return co_await TellList<ActorRow>(actors_, request, match.id);
    case RouteId::kLaunches:
      co_return co_await TellLaunches(request, match.id);
    case RouteId::kGroups:
      co_return co_await TellList<GroupRow>(groups_, request, match.id);
    case RouteId::kJobs:
      co_return co_await TellJobs(request, match.id);
    case RouteId::kStream:
    case RouteId::kSubmitJob:
    case RouteId::kStopJob:
    case RouteId::kStopLaunch:
    case RouteId::kLaunchLog:
    case RouteId::kJobLog:
    case RouteId::kActorLog:
      break;  // the server's own
    case RouteId::kEvents:
      co_return co_await TellEvents(request);
  }
  co_return ErrorResponse(404, "there is nothing at this path");
}

Task<StatusOr<std::shared_ptr<const ListView<LaunchRow>>>> Answers::LaunchesNow() {
  co_return co_await launches_->Get(true);
}

Task<StatusOr<LaunchRow>> Answers::FindLaunch(std::string id, bool is_job, bool fresh) {
  TROUPE_CO_ASSIGN(const auto view, co_await launches_->Get(fresh));
  const auto id_of = [is_job](const LaunchRow& row) { return is_job ? row.job : IdOf(row); };
  if (is_job ? HasJob(*view, id) : HasLaunch(*view, id)) co_return OnlyOne(*view, {}, id, id_of);
  Earlier earlier;
  if (is_job) {
    TROUPE_CO_ASSIGN(const auto deleted, co_await deleted_jobs_->Get(fresh));
    TROUPE_CO_ASSIGN(earlier, earlier_.JobsBeginning(id, *deleted));
  } else {
    TROUPE_CO_ASSIGN(const auto nodes, co_await nodes_->Get(false));
    TROUPE_CO_ASSIGN(earlier, earlier_.Beginning(id, nodes->rows));
  }
  co_return OnlyOne(*view, earlier.rows, id, id_of);
}

Task<StatusOr<ActorRow>> Answers::FindActor(std::string id, bool fresh) {
  TROUPE_CO_ASSIGN(const auto view, co_await actors_->Get(fresh));
  const auto id_of = [](const ActorRow& row) { return IdOf(row); };
  co_return OnlyOne(*view, {}, id, id_of);
}

Task<StatusOr<std::optional<NodeRow>>> Answers::FindNode(NodeId node) {
  TROUPE_CO_ASSIGN(const auto view, co_await nodes_->Get(true));
  for (const NodeRow& row : view->rows) {
    if (row.info.node == node) co_return std::optional<NodeRow>(row);
  }
  co_return std::optional<NodeRow>();
}

Task<HttpResponse> Answers::TellPulse(RouteId id, bool fresh) {
  const auto pulse = co_await pulse_->Get(fresh);
  if (!pulse.ok()) co_return HeldUp(pulse.status());
  if (id == RouteId::kReady && (*pulse)->read_only) {
    co_return ErrorResponse(503, "the head is read-only: its disk is full");
  }
  co_return Text("text/plain; charset=utf-8", "ok\n");
}

Task<HttpResponse> Answers::TellMetrics(const HttpRequest& request) {
  const StatusOr<MetricsQuery> query = ReadMetricsQuery(request.query);
  if (!query.ok()) co_return ErrorResponse(400, MessageOf(query.status()));
  const auto totals = co_await totals_->Get(request.no_cache);
  if (!totals.ok()) co_return HeldUp(totals.status());
  const Exposition::Format format = Exposition::FormatFor(request.accept);
  std::string text = FormatMetrics(**totals, format, *query, head_.journal_folder);
  co_return Text(Exposition::TypeOf(format), std::move(text));
}

Task<HttpResponse> Answers::TellTargets(const HttpRequest& request) {
  const auto totals = co_await totals_->Get(request.no_cache);
  if (!totals.ok()) co_return HeldUp(totals.status());
  co_return TargetsOf((*totals)->address, (*totals)->cluster);
}

template <class Row>
Task<HttpResponse> Answers::TellList(Seen<ListView<Row>> list, const HttpRequest& request,
                                     std::string id) {
  const auto view = co_await list->Get(request.no_cache);
  if (!view.ok()) co_return HeldUp(view.status());
  co_return id.empty() ? PageOf(**view, request) : RowWith(**view, id);
}

Task<HttpResponse> Answers::TellLaunches(const HttpRequest& request, std::string id) {
  const auto view = co_await launches_->Get(request.no_cache);
  if (!view.ok()) co_return HeldUp(view.status());
  if (HasLaunch(**view, id)) co_return RowWith(**view, id, Earlier());
  if (!id.empty()) {
    const auto nodes = co_await nodes_->Get(false);
    if (!nodes.ok()) co_return HeldUp(nodes.status());
    const StatusOr<Earlier> earlier = earlier_.Beginning(id, (*nodes)->rows);
    co_return earlier.ok() ? RowWith(**view, id, *earlier) : HeldUp(earlier.status());
  }
  const PagingOrRefusal paging = ReadPaging(request);
  if (paging.refusal) co_return *paging.refusal;
  const StatusOr<Earlier> earlier = co_await earlier_.Page(paging.paging);
  co_return earlier.ok() ? PageOf(**view, request, *earlier) : HeldUp(earlier.status());
}

Task<HttpResponse> Answers::TellJobs(const HttpRequest& request, std::string id) {
  const auto view = co_await launches_->Get(request.no_cache);
  if (!view.ok()) co_return HeldUp(view.status());
  if (HasJob(**view, id)) co_return JobWith(**view, id, Earlier());
  const auto deleted = co_await deleted_jobs_->Get(request.no_cache);
  if (!deleted.ok()) co_return HeldUp(deleted.status());
  if (!id.empty()) {
    const StatusOr<Earlier> earlier = earlier_.JobsBeginning(id, **deleted);
    co_return earlier.ok() ? JobWith(**view, id, *earlier) : HeldUp(earlier.status());
  }
  const PagingOrRefusal paging = ReadPaging(request);
  if (paging.refusal) co_return *paging.refusal;
  const StatusOr<Earlier> earlier = co_await earlier_.JobsPage(paging.paging, **deleted);
  co_return earlier.ok() ? JobsPageOf(**view, request, *earlier) : HeldUp(earlier.status());
}

Task<HttpResponse> Answers::TellEvents(const HttpRequest& request) {
  const auto view = co_await events_->Get(request.no_cache);
  if (!view.ok()) co_return HeldUp(view.status());
  co_return PageOf(**view, request);
}

}  // namespace troupe::head
