#include "head/server/job_log_link.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/wire/error_reply.h"

namespace troupe::head {
namespace {

wire::Message RefusalOf(const Status& why) {
  wire::Message message;
  message.body = wire::ErrorReplyOf(why);
  return message;
}

}  // namespace

void JobLogLink::Serve(Effects& effects, const Answer& answer) {
  const bool wanted = !effects.kept_logs.empty() || !effects.kept_log_reads.empty();
  if (wanted && !thread_) thread_.emplace("head-job-logs");
  if (!thread_) return;
  for (KeptLog& log : effects.kept_logs) {
    const std::size_t bytes = log.text.size();
    if (waiting_bytes_ + bytes > kWaitingBytesMax) {
      Log(LogLevel::kWarning, "the end of a job's log is kept by its node alone: too many came",
          {{"launch", log.launch.Hex()}});
      continue;
    }
    waiting_bytes_ += bytes;
    async::asio::post(thread_->executor(), [this, log = std::move(log)] { Write(log); });
  }
  for (const KeptLogRead& read : effects.kept_log_reads) {
    if (reads_ >= kReadsMax) {
      Send refusal{read.to, RefusalOf(MakeError(ErrorCode::kTooLarge,
                                                "the head reads as many logs as it may at a time "
                                                "(kReadsMax): ask again"))};
      refusal.message.reply_to = read.reply_to;
      answer(refusal);
      continue;
    }
    ++reads_;
    async::asio::post(thread_->executor(), [this, read, answer] {
      Send send{read.to, Read(read)};
      async::asio::post(loop_, [this, answer, send = std::move(send)] {
        --reads_;
        answer(send);
      });
    });
  }
  if (effects.archived_until_us != 0) {
    async::asio::post(thread_->executor(), [this, until_us = effects.archived_until_us] {
      const Status forgotten = logs_ == nullptr ? absl::OkStatus() : logs_->Forget(until_us);
      if (!forgotten.ok()) {
        Log(LogLevel::kWarning, "old logs of jobs stay", {{"why", MessageOf(forgotten)}});
      }
    });
  }
}

Status JobLogLink::OpenIfNeeded() {
  if (logs_ != nullptr) return absl::OkStatus();
  TROUPE_ASSIGN(logs_, SqliteJobLogs::Open(folder_));
  return absl::OkStatus();
}

void JobLogLink::Write(const KeptLog& log) {
  waiting_bytes_ -= log.text.size();
  Status written = OpenIfNeeded();
  if (written.ok()) written = logs_->Write(log);
  if (!written.ok()) {
    Log(LogLevel::kWarning, "the end of a job's log is kept by its node alone",
        {{"launch", log.launch.Hex()}, {"why", MessageOf(written)}});
  }
}

wire::Message JobLogLink::Read(const KeptLogRead& read) {
  StatusOr<wire::Message> found = Find(read);
  wire::Message message = found.ok() ? *std::move(found) : RefusalOf(found.status());
  message.reply_to = read.reply_to;
  return message;
}

StatusOr<wire::Message> JobLogLink::Find(const KeptLogRead& read) {
  TROUPE_TRY(OpenIfNeeded());
  TROUPE_ASSIGN(const std::optional<KeptLog> log, logs_->Read(read.launch, read.epoch));
  if (!log) {
    return MakeError(ErrorCode::kNotFound,
                     "the head keeps no log of launch " + read.launch.Short() +
                         ": it keeps the end of what jobs wrote that have ended");
  }
  const std::uint64_t end = log->offset + log->text.size();
  wire::LogChunk chunk;
  chunk.offset = std::min(std::max(read.offset, log->offset), end);
  chunk.dropped_bytes = chunk.offset > read.offset ? chunk.offset - read.offset : 0;
  const std::uint64_t most = read.bytes_max == 0 ? kKeptLogBytes : read.bytes_max;
  wire::Message message;
  message.attachment = log->text.substr(chunk.offset - log->offset, most);
  chunk.next = chunk.offset + message.attachment.size();
  chunk.ended = chunk.next == end;
  message.body = chunk;
  return message;
}

}  // namespace troupe::head
