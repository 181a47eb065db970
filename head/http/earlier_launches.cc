#include "head/http/earlier_launches.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "head/core/machine/apply.h"
#include "head/http/row_json.h"

namespace troupe::head {
namespace {

using async::Task;
using By = ArchiveQuery::By;

constexpr std::size_t kKeysPerSlice = 512;

// A slice may end between two launches of the same job: all of that job are then for the next one.
void DropLastJob(std::vector<LaunchRow>* rows) {
  const std::string last = rows->back().job;
  if (rows->front().job == last) return;
  while (rows->back().job == last) rows->pop_back();
}

}  // namespace

bool DeletedJobsLister::operator()(DeletedJobs& view) {
  auto each = state_.values.upper_bound(after_);
  for (std::size_t i = 0; i < kKeysPerSlice; ++i, ++each) {
    if (each == state_.values.end() || each->first.first != kDeletedJobs) return true;
    view.launches.insert(each->first.second);
    after_ = each->first;
  }
  return false;
}

Task<StatusOr<Earlier>> EarlierLaunches::Page(const Paging& paging) {
  ArchiveQuery query;
  query.by = By::kId;
  if (!paging.after.empty()) {
    const std::optional<LaunchId> after = LaunchId::FromHex(paging.after);
    if (!after) co_return Earlier();  // a cursor of another list: behind all ids, or before them
    query.launch = *after;
  }
  Fits fits = [&paging](const LaunchRow& row) { return Passes(row, paging.filter); };
  auto scanning = Scan(std::move(query), paging.limit + 1, std::move(fits));
  co_return co_await std::move(scanning);
}

Task<StatusOr<Earlier>> EarlierLaunches::JobsPage(const Paging& paging,
                                                  const DeletedJobs& deleted) {
  ArchiveQuery query;
  query.by = By::kJob;
  query.text = paging.after;
  Fits fits = [&](const LaunchRow& row) {
    return deleted.launches.count(IdOf(row)) == 0 && Passes(JobRow{&row}, paging.filter);
  };
  auto scanning = Scan(std::move(query), paging.limit + 1, std::move(fits));
  co_return co_await std::move(scanning);
}

Task<StatusOr<Earlier>> EarlierLaunches::Scan(ArchiveQuery query, std::size_t wanted, Fits fits) {
  Earlier found;
  if (!read_) co_return found;
  const async::Executor own = co_await async::asio::this_coro::executor;
  query.limit = kRecordsPerSlice;
  for (std::size_t scanned = 0; scanned < kScannedMax && found.rows.size() < wanted;) {
    TROUPE_CO_ASSIGN(const std::vector<EndedRecord> records, read_(query));
    if (records.empty()) {
      found.upto.clear();
      break;
    }
    scanned += records.size();
    std::vector<LaunchRow> rows = RowsOf(records);
    const bool by_job = query.by == By::kJob;
    if (by_job && records.size() == query.limit) DropLastJob(&rows);
    query.launch = rows.back().info.launch;
    query.text = rows.back().job;
    found.upto = by_job ? query.text : IdOf(rows.back());
    for (LaunchRow& row : rows) {
      if (fits(row)) found.rows.push_back(std::move(row));
    }
    co_await async::asio::post(own, async::kTuple);
  }
  co_return found;
}

StatusOr<Earlier> EarlierLaunches::Beginning(const std::string& id,
                                             const std::vector<NodeRow>& nodes) {
  Earlier found;
  if (!read_ || id.empty()) return found;
  ArchiveQuery query;
  query.by = By::kPrefix;
  query.text = id;
  query.limit = kMatchesMax;
  TROUPE_ASSIGN(const std::vector<EndedRecord> records, read_(query));
  found.rows = RowsOf(records, nodes);
  return found;
}

StatusOr<Earlier> EarlierLaunches::JobsBeginning(const std::string& id,
                                                 const DeletedJobs& deleted) {
  TROUPE_ASSIGN(Earlier found, Beginning(id, {}));
  std::erase_if(found.rows, [&](const LaunchRow& row) {
    return row.job.empty() || deleted.launches.count(IdOf(row)) > 0;
  });
  return found;
}

std::vector<LaunchRow> EarlierLaunches::RowsOf(const std::vector<EndedRecord>& records,
                                               const std::vector<NodeRow>& nodes) const {
  State state;
  state.users.self = core_.options().user;
  for (const NodeRow& row : nodes) {
    Node& node = state.nodes[row.info.node];
    node.id = row.info.node;
    node.name = row.info.name;
    node.info.host = row.info.host;
  }
  for (const EndedRecord& record : records) {
    for (const wire::Event& event : record.events) Apply(state, event);
  }
  Turn turn = core_.TurnToLookAt(state, clock_.Now(), clock_.WallTimeUs());
  turn.BeginListing();
  std::vector<LaunchRow> rows;
  for (const EndedRecord& record : records) {
    const Launch* launch = turn.FindLaunch(record.launch);
    if (launch != nullptr) rows.push_back(RowOf(turn, *launch));
  }
  return rows;
}

}  // namespace troupe::head
