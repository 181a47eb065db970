#include "runtime/obs/trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace troupe::obs {
namespace {

constexpr char kMagic[] = "troupetr";
constexpr std::size_t kStepBytes = 16384;
constexpr std::size_t kFileBytes = kTraceHeaderBytes + kTraceRecords * sizeof(TraceRecord);

// The path of the ring's file; set before the header is.
std::atomic<const std::string*> file_path{nullptr};
// Guards the growth of the file: one thread at a time; a record that comes meanwhile is dropped.
std::atomic<bool> growing{false};

std::int64_t Nanoseconds(Instant at) { return at.time_since_epoch().count(); }

Status Failed(const std::string& what) {
  return MakeError(ErrorCode::kInternal, what + ": " + std::strerror(errno));
}

bool WriteAll(int fd, const char* bytes, std::size_t size, std::size_t at) {
  while (size > 0) {
    const ssize_t wrote = ::pwrite(fd, bytes, size, static_cast<off_t>(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes += wrote;
    at += static_cast<std::size_t>(wrote);
    size -= static_cast<std::size_t>(wrote);
  }
  return true;
}

/// Makes the file longer by zeros until its first `bytes` are backed. False: the disk is full.
bool Grow(TraceHeader& ring, std::size_t bytes) {
  static constexpr char kZeros[kStepBytes] = {};
  const char* const path = file_path.load(std::memory_order_acquire)->c_str();
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return false;
  for (std::size_t at = ring.backed.load(); at < bytes; at = ring.backed.load()) {
    const std::size_t step = std::min(kStepBytes, kFileBytes - at);
    if (!WriteAll(file.get(), kZeros, step, at)) return false;
    ring.backed.store(at + step, std::memory_order_release);
  }
  return true;
}

bool Backed(TraceHeader& ring, std::size_t bytes) {
  if (bytes <= ring.backed.load(std::memory_order_acquire)) return true;
  if (growing.exchange(true, std::memory_order_acquire)) return false;
  const bool grown = Grow(ring, bytes);
  growing.store(false, std::memory_order_release);
  return grown;
}

std::uint32_t ThreadId() {
  thread_local const auto id = static_cast<std::uint32_t>(::gettid());
  return id;
}

}  // namespace

Instant TraceNow() {
  timespec t;
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return Instant(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

Status OpenTrace(const std::string& path, std::string_view label, std::uint32_t calls_every) {
  const UniqueFd file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Failed("open " + path);
  label = label.substr(0, kTraceLabelMax);
  std::vector<char> first(kTraceHeaderBytes);
  std::memcpy(first.data() + kTraceLabelAt, label.data(), label.size());
  if (!WriteAll(file.get(), first.data(), first.size(), 0) ||
      ::ftruncate(file.get(), static_cast<off_t>(kFileBytes)) != 0) {
    const Status status = Failed("write " + path);
    ::unlink(path.c_str());
    return status;
  }
  void* const mapped =
      ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return Failed("map " + path);
  auto* const header = new (mapped) TraceHeader;
  header->version = 1;
  header->record_bytes = sizeof(TraceRecord);
  header->records = kTraceRecords;
  header->pid = ::getpid();
  header->began_ns = Nanoseconds(TraceNow());
  header->label_bytes = static_cast<std::uint32_t>(label.size());
  header->calls_every.store(calls_every, std::memory_order_relaxed);
  std::memcpy(header->magic, kMagic, sizeof header->magic);
  header->backed.store(kTraceHeaderBytes, std::memory_order_relaxed);
  // An earlier ring is left as it is: other threads may be writing to it. What they make it longer
  // by from now on is of the new one, and may cost that a record.
  static auto* const paths = new std::list<std::string>;  // never destroyed: threads may read one
  paths->push_back(path);
  file_path.store(&paths->back(), std::memory_order_release);
  trace_detail::header.store(header, std::memory_order_release);
  return absl::OkStatus();
}

namespace trace_detail {

std::uint16_t SampleOne(std::uint32_t every) {
  thread_local std::uint32_t calls = 0;
  if (++calls % every != 0) return 0;
  TraceHeader& ring = *header.load(std::memory_order_acquire);
  const std::int64_t until = ring.calls_until_ns.load(std::memory_order_relaxed);
  const std::int64_t now = Nanoseconds(TraceNow());
  if (until != 0 && now > until) {
    ring.calls_every.store(0, std::memory_order_relaxed);
    return 0;
  }
  // Marks of calls with one sequence differ by caller and time: a multiplication spreads both.
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(now) ^ ThreadId()) * 0x9E37'79B9'7F4A'7C15u >> 48;
  return static_cast<std::uint16_t>(mixed == 0 ? 1 : mixed);
}

void Write(const Span& span) {
  TraceHeader& ring = *header.load(std::memory_order_acquire);
  const std::uint64_t number = ring.next.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::size_t slot = (number - 1) % kTraceRecords;
  const std::size_t at = kTraceHeaderBytes + slot * sizeof(TraceRecord);
  if (!Backed(ring, at + sizeof(TraceRecord))) {
    ring.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  auto& record = *reinterpret_cast<TraceRecord*>(reinterpret_cast<char*>(&ring) + at);
  record.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record.begin_ns = Nanoseconds(span.begin);
  record.end_ns = Nanoseconds(span.end);
  record.flow = span.flow;
  record.value = span.value;
  record.track = span.track != 0 ? span.track : ThreadId();
  record.kind = span.kind;
  const std::size_t bytes = std::min(span.name.size(), kSpanNameMax);
  record.name_bytes = static_cast<std::uint8_t>(bytes);
  std::memcpy(record.name, span.name.data(), bytes);
  record.number.store(number, std::memory_order_release);
}

}  // namespace trace_detail
}  // namespace troupe::obs
