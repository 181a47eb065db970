#include "runtime/base/log.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "runtime/base/log_file.h"
#include "runtime/base/mutex.h"

namespace troupe {
namespace {

std::atomic<LogLevel> least_level{LogLevel::kInfo};

struct LogState {
  Mutex mutex;
  std::string source ABSL_GUARDED_BY(mutex) = "troupe";
  std::function<void(LogLevel, const std::string&)> sink ABSL_GUARDED_BY(mutex);
  std::uint64_t bytes_max ABSL_GUARDED_BY(mutex) = 0;
};
LogState& State() {
  static LogState* state = new LogState;  // never destroyed: threads may log during exit
  return *state;
}

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

std::string WallTimeText() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char text[40];
  const std::size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + n, sizeof text - n, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text;
}

std::string LineOf(const std::string& source, LogLevel level, std::string_view event,
                   std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"" + WallTimeText() + "\",\"level\":\"" + LevelName(level) + "\"";
  line += ",\"source\":\"" + JsonEscape(source) + "\",\"event\":\"" + JsonEscape(event) + "\"";
  for (const LogField& field : fields) {
    line += ",\"" + JsonEscape(field.key) + "\":";
    line += field.number ? field.value : "\"" + JsonEscape(field.value) + "\"";
  }
  return line + "}\n";
}

void WriteLine(const std::string& line) {
  if (write(2, line.data(), line.size()) < 0) {
    // Nowhere left to report it: a closed stderr must not end a daemon.
  }
}

}  // namespace

void SetLogSink(std::function<void(LogLevel, const std::string&)> sink) {
  LogState& state = State();
  const MutexLock lock(state.mutex);
  state.sink = std::move(sink);
}

void SetLogLevel(LogLevel least) { least_level = least; }

void SetLogSource(std::string source) {
  LogState& state = State();
  const MutexLock lock(state.mutex);
  state.source = std::move(source);
}

std::string JsonEscape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out;
}

void SetLogBytesMax(std::uint64_t bytes_max) {
  LogState& state = State();
  const MutexLock lock(state.mutex);
  state.bytes_max = bytes_max;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < least_level.load(std::memory_order_relaxed)) return;
  LogState& state = State();
  const MutexLock lock(state.mutex);
  const std::string line = LineOf(state.source, level, event, fields);
  if (state.sink) {
    state.sink(level, line);
    return;
  }
  WriteLine(line);
  if (state.bytes_max == 0 || (fcntl(2, F_GETFL) & O_APPEND) == 0) return;
  const std::uint64_t dropped = HalveLogFile(2, state.bytes_max);
  if (dropped == 0) return;
  WriteLine(LineOf(state.source, LogLevel::kWarning,
                   "this log was over its size and lost its older half", {{"bytes", dropped}}));
}

}  // namespace troupe
