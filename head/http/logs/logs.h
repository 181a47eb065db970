// Logs of ranks, actors and jobs by HTTP: a page of bytes, or followed as server-sent events.
//
// A log is read from the worker that keeps it (worker_link.h), as `troupe logs` does; the end of
// a job's log comes from the head where its node is gone. What a stream says:
//
//   event: log      data: {"text":"..."}   id: 2-4711     an attempt, and where its log goes on
//   event: attempt  data: {"attempt":2}                   another attempt writes what follows
//   event: lost     data: {"bytes":4096}                  a size cap dropped so much here
//   event: kept     data: {"why":"..."}                   the end that the head keeps follows
//   event: end      data: {"state":"dead","why":""}       all was told, or why nothing more comes
//
//   LG-1  A stream holds one piece of at most kPieceBytes, and asks for the next one when its
//         reader has taken it. One that takes nothing for 10 s is dropped; it comes back by
//         Last-Event-ID.
//   LG-2  It ends when what writes the log has ended for good, by the head's word, never because a
//         connection to a worker ends; and when its token or certificate is no longer in force.
//   LG-3  At most kReadersMax pages are read at a time; streams count among all that are open.
//
// View: one head process; lives on the HTTP server's loop.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "head/http/answers.h"
#include "head/http/logs/log_query.h"
#include "head/http/logs/worker_link.h"
#include "head/http/streams.h"

namespace troupe::head {

/// Bytes of a log, and where reading goes on.
struct LogBytes {
  wire::LogChunk chunk;
  std::string text;
};

class Logs {
 public:
  static constexpr std::size_t kReadersMax = 64;
  static constexpr std::uint32_t kPieceBytes = 64u << 10;

  /// `answers` must outlive it.
  Logs(HeadSide head, Answers& answers, std::shared_ptr<Streams> streams)
      : head_(std::move(head)), answers_(answers), streams_(std::move(streams)) {}

  /// Answers a caller who has been let in and may ask. A response with `stream`: Follow() is next.
  async::Task<HttpResponse> Tell(RouteMatch match, const HttpRequest& request, HttpCaller caller);
  /// Runs a stream to its end, and closes it.
  async::Task<void> Follow(net::HttpArrival& arrival, HttpRequest request, RouteMatch match,
                           HttpCaller caller);

 private:
  class Follower;

  async::Task<StatusOr<LogSource>> Find(RouteId route, std::string id, LogQuery query, bool fresh);
  async::Task<HttpResponse> TellPage(LogSource source, LogQuery query, HttpCaller caller);
  /// kNotFound: its node is gone; kConnection, kTimeout: it does not answer.
  async::Task<StatusOr<std::shared_ptr<WorkerLink>>> LinkTo(LogSource source, HttpCaller caller);
  async::Task<StatusOr<LogBytes>> ReadAtWorker(LogSource source, LogQuery query,
                                               HttpCaller caller);
  /// Reads what the head keeps of a job's log.
  async::Task<StatusOr<LogBytes>> ReadKept(LogSource source, LogQuery query, HttpCaller caller);

  const HeadSide head_;
  Answers& answers_;
  const std::shared_ptr<Streams> streams_;
  std::size_t readers_ = 0;
};

/// Reads what there is at `query.offset`; waits for more up to `wait`.
async::Task<StatusOr<LogBytes>> ReadPiece(std::shared_ptr<WorkerLink> link, LogSource source,
                                          LogQuery query, Duration wait);

}  // namespace troupe::head
