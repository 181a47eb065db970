#include "runtime/base/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>

namespace troupe {
namespace {

std::atomic<LogLevel> least_level{LogLevel::kInfo};

struct LogState {
  std::mutex mutex;
  std::string source = "troupe";
  std::function<void(LogLevel, const std::string&)> sink;
};
LogState& State() {
  static LogState* state = new LogState;  // never destroyed: threads may log during exit
  return *state;
}

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
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

}  // namespace

void SetLogSink(std::function<void(LogLevel, const std::string&)> sink) {
  std::lock_guard lock(State().mutex);
  State().sink = std::move(sink);
}

void SetLogLevel(LogLevel least) { least_level = least; }

void SetLogSource(std::string source) {
  std::lock_guard lock(State().mutex);
  State().source = std::move(source);
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

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < least_level.load(std::memory_order_relaxed)) return;
  std::string line = "{\"time\":\"" + WallTimeText() + "\",\"level\":\"" + LevelName(level) + "\"";
  LogState& state = State();
  std::lock_guard lock(state.mutex);
  line += ",\"source\":\"" + JsonEscape(state.source) + "\",\"event\":\"" + JsonEscape(event) + "\"";
  for (const LogField& field : fields) {
    line += ",\"" + JsonEscape(field.key) + "\":";
    line += field.number ? field.value : "\"" + JsonEscape(field.value) + "\"";
  }
  line += "}\n";
  if (state.sink) {
    state.sink(level, line);
  } else if (write(2, line.data(), line.size()) < 0) {
    // Nowhere left to report it: a closed stderr must not end a daemon.
  }
}

}  // namespace troupe
