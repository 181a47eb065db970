#include "worker/service.h"

#include <algorithm>
#include <utility>

#include "runtime/wire/error_reply.h"

namespace troupe::worker {
namespace {

constexpr Duration kWaitMax = std::chrono::seconds(60);
constexpr std::size_t kStreamsMax = 16384;
constexpr std::uint32_t kPartsBytesMax = 1u << 20;

Status NoOutput(const std::string& file) {
  return MakeError(ErrorCode::kNotFound, "this node has no output " + file +
                                             ": it never started here, or its logs were removed\n"
                                             "  (logs of what has ended are kept for 7 days and 4 "
                                             "GiB per node, see `troupe start --log-days "
                                             "--log-gib`)");
}

/// A waiting request, as long as it waits.
class Waiting {
 public:
  Waiting(std::set<LogWatch::Waiter*>& all, LogWatch::Waiter& waiter)
      : all_(all), waiter_(&waiter) {
    all_.insert(waiter_);
  }
  ~Waiting() { all_.erase(waiter_); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::set<LogWatch::Waiter*>& all_;
  LogWatch::Waiter* waiter_;
};

}  // namespace

wire::Message ErrorAnswer(std::uint64_t id, const Status& status) {
  wire::Message message;
  message.reply_to = id;
  message.body = wire::ErrorReplyOf(status);
  return message;
}

Service::Service(const Clock& clock, BlobStore& blobs, LogFiles& logs, LogWatch& watch,
                 std::function<int(const std::string&)> writer, Readings readings)
    : clock_(clock),
      blobs_(blobs),
      logs_(logs),
      watch_(watch),
      writer_(std::move(writer)),
      readings_(std::move(readings)) {}

bool Service::Handles(const wire::Body& body) {
  return wire::Holds<wire::ReadLog>(body) || wire::Holds<wire::ReadLogs>(body) ||
         wire::Holds<wire::ReadStacks>(body) || wire::Holds<wire::ReadProfile>(body) ||
         wire::Holds<wire::ReadTimeline>(body) || wire::Holds<wire::PutBlob>(body) ||
         wire::Holds<wire::GetBlob>(body);
}

async::Task<wire::Message> Service::Answer(std::uint64_t asker, wire::Message request) {
  StatusOr<wire::Message> answer = MakeError(ErrorCode::kInvalid, "a worker does not answer this");
  if (auto* read = wire::GetIf<wire::ReadLog>(&request.body)) {
    answer = co_await ReadLog(std::move(*read));
  } else if (auto* several = wire::GetIf<wire::ReadLogs>(&request.body)) {
    answer = co_await ReadLogs(asker, std::move(*several));
  } else if (auto* stacks = wire::GetIf<wire::ReadStacks>(&request.body)) {
    answer = co_await readings_.stacks(std::move(*stacks));
  } else if (auto* profile = wire::GetIf<wire::ReadProfile>(&request.body)) {
    answer = co_await readings_.profile(std::move(*profile));
  } else if (auto* timeline = wire::GetIf<wire::ReadTimeline>(&request.body)) {
    answer = co_await readings_.timeline(std::move(*timeline));
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
  const std::vector<std::string> paths(1, logs_.Path(file));
  LogWatch::Waiter waiter(watch_, paths);
  if (request.age_ms != 0 && request.offset == 0) {
    const std::uint64_t now_us = clock_.WallTimeUs();
    const std::uint64_t age_us = std::min(request.age_ms, now_us / 1000) * 1000;
    request.offset = logs_.Since(file, now_us - age_us).value_or(0);
  }
  for (;;) {
    const bool writing = writer_(file) != 0;
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

void Service::Forget(std::uint64_t asker) {
  const auto reader = readers_.find(asker);
  if (reader == readers_.end()) return;
  reader->second->enough = ~std::uint64_t{0};
  for (LogWatch::Waiter* waiter : reader->second->waiting) waiter->Wake();
  readers_.erase(reader);
}

StatusOr<bool> Service::Collect(const wire::ReadLogs& request,
                                const std::vector<std::string>& files,
                                const std::set<std::size_t>& places, wire::LogParts* parts,
                                std::string* text) const {
  const std::uint32_t bytes_max = std::min(std::max(request.bytes_max, 1u), kPartsBytesMax);
  bool news = false;
  for (const std::size_t i : places) {
    if (text->size() >= bytes_max) break;
    const wire::LogStream& stream = request.streams[i];
    // Reads the writer before the file, so that its last bytes are not missed.
    const int writer = writer_(files[i]);
    const bool ended = stream.over && writer == 0;
    const auto left = static_cast<std::uint32_t>(bytes_max - text->size());
    StatusOr<LogPiece> piece = logs_.Read(files[i], stream.offset, left);
    const bool missing = ErrorCodeOf(piece.status()) == ErrorCode::kNotFound;
    if (!piece.ok() && !missing) return piece.status();
    wire::LogPart part;
    part.stream = static_cast<std::uint32_t>(i);
    part.next = piece.ok() ? piece->next : stream.offset;
    part.bytes = piece.ok() ? static_cast<std::uint32_t>(piece->text.size()) : 0;
    part.dropped_bytes = piece.ok() ? piece->dropped : 0;
    part.ended = ended && part.bytes == 0;
    part.pid = writer;
    if (part.bytes == 0 && part.dropped_bytes == 0 && !part.ended) continue;
    news = true;
    if (piece.ok()) *text += piece->text;
    parts->parts.push_back(part);
  }
  return news;
}

async::Task<StatusOr<wire::Message>> Service::ReadLogs(std::uint64_t asker,
                                                       wire::ReadLogs request) {
  if (request.streams.size() > kStreamsMax) {
    co_return MakeError(ErrorCode::kInvalid,
                        "more logs at once than " + std::to_string(kStreamsMax));
  }
  std::shared_ptr<Reader>& known = readers_[asker];
  if (!known) known = std::make_shared<Reader>();
  const std::shared_ptr<Reader> reader = known;  // keeps it over Forget
  reader->enough = std::max(reader->enough, request.enough);
  if (request.enough != 0) {
    for (LogWatch::Waiter* waiter : reader->waiting) waiter->Wake();
  }
  std::vector<std::string> files;
  std::vector<std::string> paths;
  std::set<std::size_t> look;
  std::set<std::size_t> over;
  for (const wire::LogStream& stream : request.streams) {
    const LogPlace place{stream.actor.Hex(), "actor"};
    look.insert(files.size());
    if (stream.over) over.insert(files.size());
    files.push_back(LogFile(place, stream.stderr));
    paths.push_back(logs_.Path(files.back()));
  }
  const Instant until =
      clock_.Now() + std::min<Duration>(std::chrono::milliseconds(request.wait_ms), kWaitMax);
  wire::LogParts parts;
  wire::Message message;
  LogWatch::Waiter waiter(watch_, std::move(paths));
  for (;;) {
    const StatusOr<bool> collected = Collect(request, files, look, &parts, &message.attachment);
    if (!collected.ok()) co_return collected.status();
    const Duration left = until - clock_.Now();
    if (*collected || left <= Duration::zero() || request.round <= reader->enough) break;
    {
      const Waiting waiting(reader->waiting, waiter);
      co_await waiter.Changed(left);
    }
    look = over;  // the end of a process is no change of its files
    for (const std::size_t place : waiter.Take()) look.insert(place);
  }
  message.body = std::move(parts);
  co_return message;
}

StatusOr<wire::Message> Service::PutBlob(std::uint64_t asker, const wire::PutBlob& request,
                                         const std::string& chunk) {
  TROUPE_ASSIGN(const bool complete,
                blobs_.Put(asker, request.sha256, request.offset, request.size_bytes, chunk));
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
