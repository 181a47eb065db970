// The log of a daemon or of an actor process: one JSON object a line (or a human form on a
// terminal), written with one write(2) a line so that lines of several threads never mix.
//
// Own code on purpose: virtual time, node name and capture in the simulator are needed, and
// abseil's logger is not in Debian's package. No secret is ever given to it: Secret (secret.h) has
// no text form.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, std::int64_t v) : key(k), value(std::to_string(v)), number(true) {}
  LogField(std::string_view k, std::uint64_t v) : key(k), value(std::to_string(v)), number(true) {}
  LogField(std::string_view k, int v) : key(k), value(std::to_string(v)), number(true) {}
  std::string key;
  std::string value;
  bool number = false;
};

/// Sets the sink of log lines; the default writes to descriptor 2. Call before other threads log.
void SetLogSink(std::function<void(LogLevel, const std::string& line)> sink);
void SetLogLevel(LogLevel least);
/// Holds descriptor 2 to this size where it is a file open for appending: after a line that takes
/// it over, it loses its older half, and another line says so. 0 (the default): no limit. Not with
/// a sink.
void SetLogBytesMax(std::uint64_t bytes_max);
/// Sets the name of the logging process, e.g. "head" or "worker node-a"; part of every line.
void SetLogSource(std::string source);

/// Writes one line. Thread-safe; blocks only as long as write(2) does.
///   Log(LogLevel::kInfo, "node joined", {{"node", id.Short()}, {"cpus", 4}});
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

/// `text` as the inside of a JSON string: quotes, backslashes and control characters escaped.
std::string JsonEscape(std::string_view text);

}  // namespace troupe
