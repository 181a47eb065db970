// Spans of what this process does, in a ring of fixed-size records in a file: whoever knows the
// path reads them, also after the process has died (troupe/_tracing/rings.py).
//
// Thread-safe, never blocks on another thread. A process without an open ring records nothing. Once
// the ring is full the oldest records are overwritten; what cannot be written is counted as
// dropped. A forked child of the program's goes on in the same ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::obs {

/// Values are in files and in troupe/_tracing/record.py: append only.
enum class SpanKind : std::uint8_t {
  kPhase = 1,       // a phase of a launch or of an actor's life
  kTask = 2,        // as its owner saw it; track: the lane it ran on; value: 1 of one that failed
  kTransfer = 3,    // value: bytes
  kCollective = 4,  // value: its number in the group
  kTrial = 5,       // a sweep's
  kCall = 6,        // an actor call at its caller: from its beginning until it was queued or sent
  kRun = 7,         // the call at its actor
};

inline constexpr std::uint32_t kTraceRecords = 65536;
inline constexpr std::size_t kSpanNameMax = 48;
inline constexpr std::size_t kTraceHeaderBytes = 4096;
inline constexpr std::size_t kTraceLabelAt = 1024;
inline constexpr std::size_t kTraceLabelMax = kTraceHeaderBytes - kTraceLabelAt;

struct Span {
  SpanKind kind = SpanKind::kPhase;
  Instant begin{};
  Instant end{};
  std::string_view name;
  std::uint64_t flow = 0;   // a call and its run have the same, not 0
  std::uint64_t value = 0;  // by kind
  std::uint32_t track = 0;  // 0: this thread
};

/// The first page of the file. A reader may write `calls_every` and `calls_until_ns`.
struct TraceHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t records = 0;  // there is room for
  std::int32_t pid = 0;
  std::int64_t began_ns = 0;
  std::atomic<std::int64_t> ended_ns{0};  // written by the worker
  std::atomic<std::uint64_t> next{0};     // records so far
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::int64_t> calls_until_ns{0};  // 0: for ever
  std::atomic<std::uint32_t> calls_every{0};  // rate: one actor call in so many is recorded; 0:
                                              // none
  std::uint32_t label_bytes = 0;
  // How much of the file has memory or disk behind it: a store beyond that could find the disk
  // full, which is a SIGBUS.
  std::atomic<std::uint64_t> backed{0};
};
static_assert(sizeof(TraceHeader) == 80);

struct TraceRecord {
  std::atomic<std::uint64_t> number{0};  // the record's, from 1; 0: it is being written
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t flow = 0;
  std::uint64_t value = 0;
  std::uint32_t track = 0;
  SpanKind kind = SpanKind::kPhase;
  std::uint8_t name_bytes = 0;
  std::uint16_t unused = 0;
  char name[kSpanNameMax] = {};
};
static_assert(sizeof(TraceRecord) == 96);

namespace trace_detail {
inline constinit TraceHeader nothing;  // header for a process without a ring
inline constinit std::atomic<TraceHeader*> header{&nothing};
std::uint16_t SampleOne(std::uint32_t every);
void Write(const Span& span);
}  // namespace trace_detail

/// Makes a new file at `path` this process's ring, in place of an earlier one. `label`: JSON that
/// says what the process is, cut off where it is too long. Errors of the system; the process then
/// records what it did before.
Status OpenTrace(const std::string& path, std::string_view label, std::uint32_t calls_every);

/// Now, as spans count time: the clock of runtime/base/time.h, read directly.
Instant TraceNow();

inline bool Tracing() {
  return trace_detail::header.load(std::memory_order_relaxed) != &trace_detail::nothing;
}

inline void AddSpan(const Span& span) {
  if (Tracing()) trace_detail::Write(span);
}

/// A mark for the actor call that begins now, not 0 where the call is to be recorded. One branch
/// where none is.
inline std::uint16_t SampleCall() {
  const TraceHeader* const header = trace_detail::header.load(std::memory_order_relaxed);
  const std::uint32_t every = header->calls_every.load(std::memory_order_relaxed);
  return every == 0 ? std::uint16_t{0} : trace_detail::SampleOne(every);
}

/// Id shared by a call and its run: the mark that travels, and the call's number.
inline std::uint64_t FlowOf(std::uint16_t mark, std::uint64_t sequence) {
  return std::uint64_t{mark} << 48 | (sequence & 0xFF'FFFF'FFFFu);
}

}  // namespace troupe::obs
