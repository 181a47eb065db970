// Fuzzes what another process says about objects: control frames, put to a table that owns one
// object and borrows another from that process. What is taken encodes to the same bytes; the table
// refuses or obeys, and what the peer does not own or hold stays as it is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/store/core/control_frame.h"
#include "runtime/store/core/references.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace store = troupe::store;
  const troupe::ProcessId self(1, 1);
  const troupe::ProcessId peer(2, 1);
  const troupe::ProcessId third(3, 1);
  const troupe::Instant now{std::chrono::seconds(1)};
  store::References table(self);
  table.Connected(peer, 1, 0, now);
  const store::ObjectId own = table.Put(store::Value::Inline("own"), {}, now);
  const store::ObjectId lent = table.Put(store::Value::Inline("lent"), {own}, now);
  static_cast<void>(table.Lend(lent, peer, now));
  const store::ObjectId others{third, 1};
  table.Receive(third, {others, 1}, nullptr, now);
  table.Receive(peer, {{peer, 1}, 1}, nullptr, now);
  table.EndCall({peer, 1}, now);
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::uint64_t number = 0;
  for (;;) {
    store::ReceivedFrame received;
    std::string why;
    const store::FrameOutcome outcome = store::ReadFrame(bytes, {}, &received, &why);
    if (outcome == store::FrameOutcome::kBad && why.empty()) std::abort();
    if (outcome != store::FrameOutcome::kFrame) break;
    std::string again;
    if (received.alone) {
      store::AppendAck(again, received.acknowledged);
    } else {
      store::AppendFrame(again, received.frame, received.acknowledged);
      received.frame.n = ++number;  // a corpus need not count
      table.Frame(peer, 1, table.state().peers.at(peer).stream.acknowledged(), received.frame, now);
    }
    if (again != bytes.substr(0, received.bytes)) std::abort();
    static_cast<void>(table.TakeEffects());
    bytes.remove_prefix(received.bytes);
  }
  if (table.Look(own).known != store::Known::kValue) std::abort();
  if (table.Look(others).known == store::Known::kOrphan) std::abort();
  return 0;
}
