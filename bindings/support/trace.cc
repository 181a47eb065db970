#include "bindings/support/trace.h"

#include <cstdint>
#include <string>

#include "runtime/obs/trace.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

std::string OpenRing(const std::string& path, const std::string& label, std::uint32_t calls_every) {
  const Status opened = obs::OpenTrace(path, label, calls_every);
  return opened.ok() ? std::string() : MessageOf(opened);
}

void AddToRing(int kind, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns,
         std::uint64_t value) {
  obs::Span span;
  span.kind = static_cast<obs::SpanKind>(kind);
  span.begin = Instant(Duration(begin_ns));
  span.end = Instant(Duration(end_ns));
  span.name = name;
  span.value = value;
  obs::AddSpan(span);
}

}  // namespace

void bind_trace(nb::module_& m) {
  m.def("trace_open", &OpenRing, "path"_a, "label"_a, "calls_every"_a,
        "Make a new file this process's ring of spans; returns why that is not possible, or ''.");
  m.def("trace_add", &AddToRing, "kind"_a, "name"_a, "begin_ns"_a, "end_ns"_a, "value"_a = 0,
        "Record a span, by CLOCK_BOOTTIME. Without a ring nothing happens.");
}

}  // namespace troupe::bindings
