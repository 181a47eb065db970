// A request for a log, and the log of a node that it is about.
//
// Pure. A log is one stream of one process: a rank, an actor, or a job, whose stdout goes to its
// stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "head/http/lists.h"
#include "head/http/message.h"
#include "head/http/routes.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

inline constexpr std::uint32_t kLogPageBytesMax = 1u << 20;

struct LogQuery {
  std::uint32_t rank = 0;
  bool stderr_asked = false;
  std::uint64_t offset = 0;
  std::uint32_t limit = kLogPageBytesMax;
  bool follow = false;
};
struct LogQueryOrRefusal {
  LogQuery query;
  std::optional<HttpResponse> refusal;  // why the parameters cannot be meant
};
/// `route` is one of the routes of logs.
LogQueryOrRefusal ReadLogQuery(RouteId route, const HttpRequest& request);

/// A log, and where it lies now.
struct LogSource {
  wire::ReadLog target;      // without an offset
  NodeId node;               // nil: nothing has been started yet
  std::string node_name;     // as it was known when it started; may be empty
  std::string state;         // the launch's, job's or actor's
  std::uint64_t life = 0;    // differs after a restart, which may go on in the same file
  bool is_starting = false;  // the process may not be there yet
  bool is_over = false;      // the end is final: nothing is started again
  bool is_job = false;       // the head keeps the end of its log, too
};
/// kNotFound: the launch has no such rank.
StatusOr<LogSource> SourceOf(const LaunchRow& row, bool as_job, const LogQuery& query);
LogSource SourceOf(const ActorRow& row, const LogQuery& query);

/// How many bytes at the end of `text` begin a character of UTF-8 that is not whole; 3 at most.
std::size_t UnfinishedBytes(const std::string& text);

/// "2-4711": an attempt, and where reading goes on in its log. nullopt: it is none.
struct LogPosition {
  std::uint64_t attempt = 0;  // 0: of an actor, which has none
  std::uint64_t offset = 0;
};
std::string FormatPosition(const LogPosition& position);
std::optional<LogPosition> ReadPosition(const std::string& text);

}  // namespace troupe::head
