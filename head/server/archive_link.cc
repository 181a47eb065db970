#include "head/server/archive_link.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/base/log.h"

namespace troupe::head {

ReadArchive ReaderOfArchive(const SqliteOptions& options) {
  return [options, opened = std::make_shared<std::unique_ptr<SqliteArchive>>()](
             const ArchiveQuery& query) -> StatusOr<std::vector<EndedRecord>> {
    if (*opened == nullptr) {
      TROUPE_ASSIGN(*opened, SqliteArchive::OpenReader(options));
    }
    return (*opened)->Read(query);
  };
}

std::vector<RequestId> MovedSince(SqliteArchive& archive, std::uint64_t repeats_us) {
  StatusOr<std::vector<RequestId>> moved =
      archive.LatestRequests(repeats_us, MovedSubmissions::kMovedMax);
  if (moved.ok()) return *std::move(moved);
  Log(LogLevel::kWarning, "submissions whose launches are in the archive are not remembered",
      {{"why", MessageOf(moved.status())}});
  return {};
}

void ArchiveLink::Serve(Effects& effects, const Answer& answer) {
  if (!effects.archive.empty()) {
    async::asio::post(thread_.executor(), [this, answer, records = std::move(effects.archive)] {
      Write(records, answer);
    });
  }
  for (const Recall& recall : effects.recalls) {
    async::asio::post(thread_.executor(), [this, answer, recall] { Read(recall, answer); });
  }
  if (effects.archived_until_us != 0) {
    async::asio::post(thread_.executor(),
                      [this, until_us = effects.archived_until_us] { Forget(until_us); });
  }
}

void ArchiveLink::Write(const std::vector<EndedRecord>& records, const Answer& answer) {
  Archived done;
  for (const EndedRecord& record : records) done.launches.push_back(record.launch);
  const Status status = archive_->Write(records);
  done.durable = status.ok();
  if (!status.ok()) {
    Log(LogLevel::kError, "launches that are over stay in memory: the archive took none",
        {{"why", MessageOf(status)}});
  }
  async::asio::post(loop_, [answer, done = std::move(done)] { answer(done); });
}

void ArchiveLink::Read(const Recall& recall, const Answer& answer) {
  Recalled found;
  found.session = recall.session;
  found.ticket = recall.ticket;
  StatusOr<std::vector<EndedRecord>> records = archive_->Read(recall.query);
  if (records.ok()) {
    found.records = *std::move(records);
  } else {
    found.error = MessageOf(records.status());
  }
  async::asio::post(loop_, [answer, found = std::move(found)] { answer(found); });
}

// In pieces, so that requests come in between.
void ArchiveLink::Forget(std::uint64_t until_us) {
  const StatusOr<std::size_t> removed = archive_->Forget(until_us);
  if (!removed.ok()) {
    Log(LogLevel::kWarning, "old records stay in the archive",
        {{"why", MessageOf(removed.status())}});
  } else if (*removed > 0) {
    async::asio::post(thread_.executor(), [this, until_us] { Forget(until_us); });
  }
}

}  // namespace troupe::head
