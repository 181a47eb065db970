#include "head/http/logs/log_query.h"

#include <algorithm>
#include <limits>

#include "head/http/numbers.h"
#include "head/http/row_json.h"

namespace troupe::head {
namespace {

LogQueryOrRefusal RefusedQuery(std::string_view why) {
  LogQueryOrRefusal refused;
  refused.refusal = ErrorResponse(400, why);
  return refused;
}

}  // namespace

LogQueryOrRefusal ReadLogQuery(RouteId route, const HttpRequest& request) {
  LogQueryOrRefusal read;
  LogQuery& query = read.query;
  query.stderr_asked = route == RouteId::kJobLog;
  bool has_limit = false;
  for (const auto& [name, value] : request.query) {
    if (name == "offset") {
      if (!ReadWhole(value, &query.offset)) return RefusedQuery("offset must be a number of bytes");
    } else if (name == "limit") {
      has_limit = true;
      if (!ReadWhole(value, &query.limit) || query.limit == 0 || query.limit > kLogPageBytesMax)
        return RefusedQuery("limit must be a number of bytes from 1 to " +
                            std::to_string(kLogPageBytesMax));
    } else if (name == "follow") {
      if (value != "0" && value != "1") return RefusedQuery("follow must be 0 or 1");
      query.follow = value == "1";
    } else if (name == "stream" && route != RouteId::kJobLog) {
      if (value != "stdout" && value != "stderr")
        return RefusedQuery("stream must be stdout or stderr");
      query.stderr_asked = value == "stderr";
    } else if (name == "rank" && route == RouteId::kLaunchLog) {
      if (!ReadWhole(value, &query.rank) ||
          query.rank > std::uint32_t{std::numeric_limits<std::int32_t>::max()})
        return RefusedQuery("rank must be the number of a rank");
    } else {
      return RefusedQuery("a log of this kind has no parameter '" + name +
                          "'\n  all have offset, limit and follow; launches rank and stream, "
                          "actors stream");
    }
  }
  if (query.follow && has_limit) return RefusedQuery("a log that is followed has no limit");
  return read;
}

StatusOr<LogSource> SourceOf(const LaunchRow& row, bool as_job, const LogQuery& query) {
  const wire::LaunchInfo& info = row.info;
  if (query.rank >= std::max(info.ranks, 1u)) {
    return MakeError(ErrorCode::kNotFound, "this launch has ranks 0 to " +
                                               std::to_string(std::max(info.ranks, 1u) - 1) +
                                               ", not " + std::to_string(query.rank));
  }
  LogSource source;
  source.target.launch = info.launch;
  source.target.rank = static_cast<std::int32_t>(query.rank);
  source.target.epoch = info.epoch;
  source.target.stderr = query.stderr_asked;
  const auto rank = std::find_if(info.rank_infos.begin(), info.rank_infos.end(),
                                 [&](const auto& each) { return each.rank == query.rank; });
  if (rank != info.rank_infos.end() && info.epoch != 0) {
    source.node = rank->node;
    source.node_name = rank->node_name;
  }
  source.life = info.group_epoch;
  source.is_starting = info.state == wire::LaunchState::kQueued ||
                       info.state == wire::LaunchState::kReserving ||
                       info.state == wire::LaunchState::kStarting;
  source.is_over = info.state == wire::LaunchState::kTerminal;
  source.is_job = as_job;
  source.state = as_job ? *FieldOf(JobRow{&row}, "state") : *FieldOf(row, "state");
  return source;
}

LogSource SourceOf(const ActorRow& row, const LogQuery& query) {
  const wire::ActorInfo& info = row.info;
  LogSource source;
  source.target.actor = info.actor;
  source.target.stderr = query.stderr_asked;
  source.node = info.node.IsNil() ? info.failure.node : info.node;
  source.node_name = info.node_name.empty() ? info.failure.node_name : info.node_name;
  source.life = info.restarts;
  source.is_starting =
      info.state == wire::ActorState::kPending || info.state == wire::ActorState::kStarting;
  source.is_over = info.state == wire::ActorState::kDead;
  source.state = wire::NameOf(info.state);
  return source;
}

std::size_t UnfinishedBytes(const std::string& text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t whole = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return whole > back ? back : 0;
  }
  return 0;
}

std::string FormatPosition(const LogPosition& position) {
  return std::to_string(position.attempt) + "-" + std::to_string(position.offset);
}

std::optional<LogPosition> ReadPosition(const std::string& text) {
  const auto pair = ReadPair(text);
  if (!pair) return std::nullopt;
  return LogPosition{pair->first, pair->second};
}

}  // namespace troupe::head
