#include "worker/service.h"

#include <algorithm>
#include <utility>

namespace troupe::worker {
namespace {

constexpr Duration kWaitMax = std::chrono::seconds(60);

Status NoOutput(const std::string& file) {
  return MakeError(ErrorCode::kNotFound,
                   "this node has no output " + file + ": it never started here, or its logs were removed\n"
                   "  (logs of what has ended are kept for 7 days and 4 GiB per node, see `troupe start --log-days "
                   "--log-gib`)");
}

}  // namespace

wire::Message ErrorAnswer(std::uint64_t id, const Status& status) {
  wire::ErrorReply error;
  error.code = static_cast<std::uint16_t>(ErrorCodeOf(status));
  error.text = MessageOf(status);
  wire::Message message;
  message.reply_to = id;
  message.body = std::move(error);
  return message;
}

Service::Service(const Clock& clock, BlobStore& blobs, LogFiles& logs, LogWatch& watch,
                 std::function<bool(const std::string&)> writing, Stacks stacks)
    : clock_(clock),
      blobs_(blobs),
      logs_(logs),
      watch_(watch),
      writing_(std::move(writing)),
      stacks_(std::move(stacks)) {}

bool Service::Handles(const wire::Body& body) {
  return wire::Holds<wire::ReadLog>(body) ||
         wire::Holds<wire::ReadStacks>(body) ||
         wire::Holds<wire::PutBlob>(body) || wire::Holds<wire::GetBlob>(body);
}

async::Task<wire::Message> Service::Answer(std::uint64_t asker, wire::Message request) {
  StatusOr<wire::Message> answer = MakeError(ErrorCode::kInvalid, "a worker does not answer this");
  if (auto* read = wire::GetIf<wire::ReadLog>(&request.body)) {
    answer = co_await ReadLog(std::move(*read));
  } else if (auto* stacks = wire::GetIf<wire::ReadStacks>(&request.body)) {
    answer = co_await stacks_(std::move(*stacks));
  } else if (const auto* put = wire::GetIf<wire::PutBlob>(&request.body)) {
    answer = PutBlob(asker, *put, request.attachment);
  } else if (const auto* get = wire::GetIf<wire::GetBlob>(&request.body)) {
    answer = GetBlob(*get);
  }
  if (!answer.ok()) co_return ErrorAnswer(request.id, answer.status());
  answer->reply_to = request.id;
  co_return *std::move(answer);
}

StatusOr<std::string> Service::FileOf(const wire::ReadLog& request) const {
  LogPlace place;
  if (!request.actor.IsNil()) {
    place = LogPlace{request.actor.Hex(), "actor"};
  } else if (!request.launch.IsNil()) {
    const std::string launch = request.launch.Hex();
    const std::uint64_t epoch = request.epoch != 0 ? request.epoch : logs_.NewestEpoch(launch);
    place = LogPlace{launch + "/epoch-" + std::to_string(epoch),
                     "rank-" + std::to_string(std::max(request.rank, 0))};
  } else {
    return MakeError(ErrorCode::kInvalid, "name the launch or the actor whose log is wanted");
  }
  return LogFile(place, request.stderr);
}

async::Task<StatusOr<wire::Message>> Service::ReadLog(wire::ReadLog request) {
  TROUPE_CO_ASSIGN(const std::string file, FileOf(request));
  const Duration wait = std::min<Duration>(std::chrono::milliseconds(request.wait_ms), kWaitMax);
  const Instant until = clock_.Now() + wait;
  LogWatch::Waiter waiter(watch_, logs_.Path(file));
  for (;;) {
    const bool writing = writing_(file);
    StatusOr<LogPiece> read = logs_.Read(file, request.offset, request.bytes_max);
    if (ErrorCodeOf(read.status()) == ErrorCode::kNotFound) co_return NoOutput(file);
    TROUPE_CO_ASSIGN(LogPiece piece, std::move(read));
    const Duration left = until - clock_.Now();
    const bool nothing = piece.text.empty() && piece.dropped == 0;
    if (nothing && writing && left > Duration::zero()) {
      co_await waiter.Changed(left);
      continue;
    }
    wire::LogChunk chunk;
    chunk.offset = piece.offset;
    chunk.next = piece.next;
    chunk.dropped_bytes = piece.dropped;
    chunk.ended = piece.text.empty() && !writing;
    wire::Message message;
    message.body = chunk;
    message.attachment = std::move(piece.text);
    co_return message;
  }
}

StatusOr<wire::Message> Service::PutBlob(std::uint64_t asker, const wire::PutBlob& request,
                                         const std::string& chunk) {
  TROUPE_ASSIGN(const bool complete, blobs_.Put(asker, request.sha256, request.offset,
                                                request.size_bytes, chunk));
  wire::Ok ok;
  ok.text = complete ? "complete" : "";
  wire::Message message;
  message.body = std::move(ok);
  return message;
}

wire::Message Service::GetBlob(const wire::GetBlob& request) {
  BlobPiece piece = blobs_.Get(request.sha256, request.offset);
  wire::BlobChunk chunk;
  chunk.offset = request.offset;
  chunk.size_bytes = piece.size;
  chunk.found = piece.found;
  wire::Message message;
  message.body = chunk;
  message.attachment = std::move(piece.bytes);
  return message;
}

}  // namespace troupe::worker
