// Fuzzes what a head reads of its own disk: the write-ahead log's frames and the journal's rows.
// Damage is an error with words, never a crash; a row with its right checksum over junk is damage
// too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "head/journal/row_codec.h"
#include "head/journal/wal_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace head = troupe::head;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const head::WalVerdict verdict = head::ScanWal(bytes);
  if (verdict.good_bytes > size) std::abort();
  const std::uint32_t crc = head::RowCrc(7, bytes, "kept");
  const auto event = head::DecodeRow(7, bytes, "kept", crc);
  if (!event.ok()) return 0;
  head::Row row;
  row.sequence = 7;
  row.event = *event;
  if (!head::EncodeRow(row).ok()) std::abort();
  if (head::DecodeRow(8, bytes, "kept", crc).ok()) std::abort();
  return 0;
}
