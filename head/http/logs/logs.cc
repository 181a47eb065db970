#include "head/http/logs/logs.h"

#include <chrono>
#include <optional>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/base/log.h"

namespace troupe::head {
namespace {

using async::Task;

constexpr Duration kAnswerLimit = std::chrono::seconds(10);

/// Counts a page among those that are being read.
class Reading {
 public:
  explicit Reading(std::size_t& all) : all_(all) { ++all_; }
  ~Reading() { --all_; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::size_t& all_;
};

HttpResponse RefusalOf(const Status& status) {
  switch (ErrorCodeOf(status)) {
    case ErrorCode::kNotFound:
      return ErrorResponse(404, MessageOf(status));
    case ErrorCode::kInvalid:
      return ErrorResponse(400, MessageOf(status));
    default:
      return ErrorResponse(503, MessageOf(status));
  }
}

HttpResponse PageOfLog(const LogBytes& read, bool is_ended, bool is_of_head) {
  HttpResponse page;
  page.headers = {{"Troupe-Log-Offset", std::to_string(read.chunk.offset)},
                  {"Troupe-Log-Next", std::to_string(read.chunk.next)},
                  {"Troupe-Log-Ended", is_ended ? "true" : "false"}};
  if (read.chunk.dropped_bytes > 0) {
    page.headers.emplace_back("Troupe-Log-Dropped", std::to_string(read.chunk.dropped_bytes));
  }
  if (is_of_head) page.headers.emplace_back("Troupe-Log-Kept", "head");
  page.body = read.text;
  return page;
}

StatusOr<LogBytes> BytesOf(StatusOr<wire::Message> answer) {
  if (!answer.ok()) return answer.status();
  const auto* chunk = wire::GetIf<wire::LogChunk>(&answer->body);
  if (chunk == nullptr)
    return MakeError(ErrorCode::kInternal, "a question for a log was not answered");
  return LogBytes{*chunk, std::move(answer->attachment)};
}

}  // namespace

Task<StatusOr<LogBytes>> ReadPiece(std::shared_ptr<WorkerLink> link, LogSource source,
                                   LogQuery query, Duration wait) {
  wire::ReadLog question = source.target;
  question.offset = query.offset;
  question.bytes_max = query.limit;
  question.wait_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(wait).count());
  auto asking = link->Ask(std::move(question), wait + kAnswerLimit);
  co_return BytesOf(co_await std::move(asking));
}

Task<HttpResponse> Logs::Tell(RouteMatch match, const HttpRequest& request, HttpCaller caller) {
  const LogQueryOrRefusal read = ReadLogQuery(match.route->id, request);
  if (read.refusal) co_return *read.refusal;
  if (readers_ >= kReadersMax) {
    co_return ErrorResponse(503, std::to_string(kReadersMax) +
                                     " logs are being read, which is the limit: try again in a "
                                     "moment");
  }
  const Reading reading(readers_);
  auto finding = Find(match.route->id, match.id, read.query, request.no_cache);
  const StatusOr<LogSource> source = co_await std::move(finding);
  if (!source.ok()) co_return RefusalOf(source.status());
  if (read.query.follow) {
    if (!request.last_event_id.empty() && !ReadPosition(request.last_event_id))
      co_return ErrorResponse(400, "Last-Event-ID must be an id of this stream, as 1-4096");
    co_return BeginStream(*streams_, request);
  }
  auto telling = TellPage(*source, read.query, std::move(caller));
  co_return co_await std::move(telling);
}

Task<HttpResponse> Logs::TellPage(LogSource source, LogQuery query, HttpCaller caller) {
  LogBytes nothing;
  nothing.chunk.offset = nothing.chunk.next = query.offset;
  if (source.node.IsNil()) co_return PageOfLog(nothing, source.is_over, false);
  auto reading = ReadAtWorker(source, query, caller);
  const StatusOr<LogBytes> read = co_await std::move(reading);
  if (read.ok()) co_return PageOfLog(*read, read->chunk.ended && source.is_over, false);
  if (source.is_starting && ErrorCodeOf(read.status()) == ErrorCode::kNotFound)
    co_return PageOfLog(nothing, false, false);
  if (!source.is_job || !source.is_over) co_return RefusalOf(read.status());
  auto looking = ReadKept(source, query, std::move(caller));
  const StatusOr<LogBytes> kept = co_await std::move(looking);
  if (!kept.ok()) co_return RefusalOf(read.status());
  co_return PageOfLog(*kept, kept->chunk.ended, true);
}

Task<StatusOr<LogBytes>> Logs::ReadAtWorker(LogSource source, LogQuery query, HttpCaller caller) {
  auto dialling = LinkTo(source, std::move(caller));
  TROUPE_CO_ASSIGN(const std::shared_ptr<WorkerLink> link, co_await std::move(dialling));
  auto reading = ReadPiece(link, std::move(source), query, Duration(0));
  co_return co_await std::move(reading);
}

Task<StatusOr<LogBytes>> Logs::ReadKept(LogSource source, LogQuery query, HttpCaller caller) {
  wire::ReadLog question;
  question.launch = source.target.launch;
  question.epoch = source.target.epoch;
  question.offset = query.offset;
  question.bytes_max = query.limit;
  auto asking =
      AskAsCaller(head_.executor, head_.ask, std::move(caller), std::move(question), std::string());
  co_return BytesOf(co_await std::move(asking));
}

Task<StatusOr<LogSource>> Logs::Find(RouteId route, std::string id, LogQuery query, bool fresh) {
  if (route == RouteId::kActorLog) {
    auto finding = answers_.FindActor(std::move(id), fresh);
    TROUPE_CO_ASSIGN(const ActorRow actor, co_await std::move(finding));
    co_return SourceOf(actor, query);
  }
  const bool is_job = route == RouteId::kJobLog;
  auto finding = answers_.FindLaunch(std::move(id), is_job, fresh);
  TROUPE_CO_ASSIGN(const LaunchRow launch, co_await std::move(finding));
  co_return SourceOf(launch, is_job, query);
}

Task<StatusOr<std::shared_ptr<WorkerLink>>> Logs::LinkTo(LogSource source, HttpCaller caller) {
  auto finding = answers_.FindNode(source.node);
  TROUPE_CO_ASSIGN(const std::optional<NodeRow> node, co_await std::move(finding));
  const std::string name = source.node_name.empty() ? source.node.Short() : source.node_name;
  if (!node || node->info.state == wire::NodeState::kDead) {
    co_return MakeError(
        ErrorCode::kNotFound,
        "node " + name + ", which keeps this log, is gone" +
            (node && !node->info.why.empty() ? ": " + node->info.why : std::string()) +
            "\n  the log is there again when that node comes back with its folder");
  }
  wire::NodeInfo info = node->info;
  auto dialling = DialWorker(std::move(info), std::move(caller), head_.credentials, head_.clock);
  StatusOr<std::shared_ptr<WorkerLink>> link = co_await std::move(dialling);
  if (link.ok()) co_return link;
  co_return MakeError(ErrorCode::kConnection, "node " + name + ", which keeps this log, does not "
                                              "answer: " + MessageOf(link.status()));
}

/// Follower of one log. Lives in the frame of Follow().
class Logs::Follower {
 public:
  Follower(Logs& logs, net::HttpArrival& arrival, HttpRequest request, RouteMatch match,
           HttpCaller caller)
      : logs_(logs),
        peer_(arrival.peer),
        stream_(std::move(arrival.stream)),
        open_(*logs.streams_, stream_),
        request_(std::move(request)),
        route_(match.route->id),
        id_(std::move(match.id)),
        caller_(std::move(caller)),
        query_(ReadLogQuery(route_, request_).query) {
    query_.limit = kPieceBytes;
    if (const auto last = ReadPosition(request_.last_event_id)) {
      place_.attempt = last->attempt;
      query_.offset = last->offset;
      is_placed_ = true;
    }
  }

  Task<void> Run() {
    auto greeting = Write(StreamHead());
    bool goes_on = co_await std::move(greeting);
    while (goes_on && !open_.left()) {
      auto step = Step();
      goes_on = co_await std::move(step);
    }
    stream_->Close();
  }

 private:
  /// The attempt and the node whose log is read.
  struct Place {
    std::uint64_t attempt = 0;
    NodeId node;
    std::uint64_t life = 0;
    bool is_over = false;
  };

  /// Looks where the log is, tells what is there, and waits for what comes. False: the stream ends.
  Task<bool> Step() {
    const std::uint64_t news = logs_.streams_->news();
    auto finding = logs_.Find(route_, id_, query_, true);
    StatusOr<LogSource> source = co_await std::move(finding);
    if (!source.ok()) {
      auto ending = End("", MessageOf(source.status()));
      co_return co_await std::move(ending);
    }
    auto moving = MoveTo(*source);
    if (!co_await std::move(moving)) co_return false;
    Status why;
    if (!source->node.IsNil() && !is_finished_) {
      auto pumping = Pump(*source, &why);
      if (!co_await std::move(pumping)) co_return false;
    }
    if (source->is_over && (is_finished_ || source->node.IsNil())) {
      auto ending = End(source->state, "");
      co_return co_await std::move(ending);
    }
    if (source->is_over && !why.ok()) {
      auto ending = EndWithKept(*source, std::move(why));
      co_return co_await std::move(ending);
    }
    if (source->is_over) co_return true;
    auto waiting = AwaitNewsSince(news);
    co_return co_await std::move(waiting);
  }

  /// Waits until lists have changed since `news`; at times it tells that it does. False: the stream
  /// ends.
  Task<bool> AwaitNewsSince(std::uint64_t news) {
    const Instant end = logs_.head_.clock.Now() + Duration(Streams::kBeat);
    while (logs_.streams_->news() == news && !open_.left()) {
      const Duration left = end - logs_.head_.clock.Now();
      if (left <= Duration(0)) break;
      auto waiting = open_.AwaitNews(left);
      static_cast<void>(co_await std::move(waiting));
    }
    auto beating = Tell(logs_.streams_->news() == news ? kBeatText : "");
    co_return co_await std::move(beating);
  }

  /// Notices that another attempt or life writes, perhaps elsewhere. False: the stream ends.
  Task<bool> MoveTo(const LogSource& source) {
    if (source.node.IsNil()) co_return true;
    const bool is_first = !is_placed_;
    const bool is_other = place_.attempt != source.target.epoch;
    const bool is_elsewhere = !place_.node.IsNil() && place_.node != source.node;
    // A process that is started again on its node goes on in the same file. One that has just ended
    // may have written since it was last read.
    if (place_.life != source.life || place_.is_over != source.is_over) is_finished_ = false;
    place_ = {source.target.epoch, source.node, source.life, source.is_over};
    is_placed_ = true;
    if (is_first || (!is_other && !is_elsewhere)) co_return true;
    is_finished_ = false;
    query_.offset = 0;
    unfinished_.clear();
    if (!is_other) co_return true;
    auto telling =
        Tell("event: attempt\ndata: {\"attempt\":" + std::to_string(place_.attempt) + "}\n\n");
    co_return co_await std::move(telling);
  }

  /// Tells what the worker has, as it comes, until what writes there has ended or the worker does
  /// not answer (`why`). False: the stream ends.
  Task<bool> Pump(const LogSource& source, Status* why) {
    auto dialling = logs_.LinkTo(source, caller_);
    const StatusOr<std::shared_ptr<WorkerLink>> link = co_await std::move(dialling);
    if (!link.ok()) {
      *why = link.status();
      co_return true;
    }
    const Streams::Open::Leave leave(open_, [held = *link] { held->Close(); });
    while (!open_.left()) {
      auto reading = ReadPiece(*link, source, query_, Duration(Streams::kBeat));
      StatusOr<LogBytes> read = co_await std::move(reading);
      if (!read.ok()) {
        *why = read.status();
        co_return true;
      }
      is_finished_ = read->chunk.ended;
      auto telling = Tell(TextOf(*std::move(read)));
      if (!co_await std::move(telling)) co_return false;
      if (is_finished_) co_return true;
    }
    co_return false;
  }

  /// The worker does not give the log of something that has ended.
  Task<bool> EndWithKept(const LogSource& source, Status why) {
    std::string lost = MessageOf(why);  // "": the head has given all that it keeps
    std::string text = "event: kept\ndata: {\"why\":\"" + Escaped(lost) + "\"}\n\n";
    for (bool goes_on = source.is_job; goes_on;) {
      auto looking = logs_.ReadKept(source, query_, caller_);
      StatusOr<LogBytes> kept = co_await std::move(looking);
      if (!kept.ok()) {
        if (text.empty()) lost = MessageOf(kept.status());
        break;
      }
      lost.clear();
      goes_on = !kept->chunk.ended;
      text += TextOf(*std::move(kept));
      auto telling = Tell(std::exchange(text, {}));
      if (!co_await std::move(telling)) co_return false;
    }
    auto ending = End(source.state, std::move(lost));
    co_return co_await std::move(ending);
  }

  /// The events for a piece. Bytes of a character that is not whole yet wait for the next one.
  std::string TextOf(LogBytes read) {
    std::string events;
    if (read.chunk.dropped_bytes > 0) {
      unfinished_.clear();
      events = "event: lost\ndata: {\"bytes\":" + std::to_string(read.chunk.dropped_bytes) +
               "}\n\n";
    }
    query_.offset = read.chunk.next;
    std::string text = std::exchange(unfinished_, {}) + std::move(read.text);
    if (!read.chunk.ended) {
      unfinished_ = text.substr(text.size() - UnfinishedBytes(text));
      text.resize(text.size() - unfinished_.size());
    }
    if (text.empty()) return events.empty() && !read.chunk.ended ? kBeatText : events;
    const LogPosition position{place_.attempt, query_.offset - unfinished_.size()};
    return events + "event: log\nid: " + FormatPosition(position) + "\ndata: {\"text\":\"" +
           Escaped(std::move(text)) + "\"}\n\n";
  }

  /// Writes what is to be told, if the caller is still let in. False: the stream ends.
  Task<bool> Tell(std::string text) {
    auto authenticating = AuthenticateHttp(request_, peer_, logs_.head_.rules,
                                           logs_.head_.executor, logs_.head_.clock);
    const StatusOr<HttpCaller> caller = co_await std::move(authenticating);
    if (!caller.ok()) text = EndTextOf("", MessageOf(caller.status()));
    auto writing = Write(std::move(text));
    const bool is_taken = co_await std::move(writing);
    co_return is_taken && caller.ok();
  }
  Task<bool> Write(std::string text) {
    if (text.empty()) co_return true;
    auto writing = stream_->Write(text);
    const Status sent = co_await async::WithDeadline(
        std::move(writing), Duration(Streams::kWriteLimit), "a log's text to be taken");
    co_return sent.ok();
  }
  Task<bool> End(std::string state, std::string why) {
    auto telling = Tell(EndTextOf(state, std::move(why)));
    static_cast<void>(co_await std::move(telling));
    co_return false;
  }
  static std::string EndTextOf(const std::string& state, std::string why) {
    return "event: end\ndata: {\"state\":\"" + state + "\",\"why\":\"" + Escaped(std::move(why)) +
           "\"}\n\n";
  }
  static std::string Escaped(std::string text) { return JsonEscape(ValidUtf8(std::move(text))); }

  Logs& logs_;
  const net::PeerInfo peer_;
  const std::shared_ptr<net::Stream> stream_;
  Streams::Open open_;
  const HttpRequest request_;
  const RouteId route_;
  const std::string id_;
  const HttpCaller caller_;
  LogQuery query_;  // the offset goes on
  Place place_;
  bool is_placed_ = false;
  bool is_finished_ = false;  // all of what wrote there has been told
  std::string unfinished_;    // the begin of a character
};

Task<void> Logs::Follow(net::HttpArrival& arrival, HttpRequest request, RouteMatch match,
                        HttpCaller caller) {
  Follower follower(*this, arrival, std::move(request), std::move(match), std::move(caller));
  auto running = follower.Run();
  co_await std::move(running);
}

}  // namespace troupe::head
