// A row of the journal as bytes: the encoded event, its attachment, and a checksum over both and
// the sequence number, so that neither a flipped bit nor a row in a wrong place goes unseen.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "head/core/machine/io.h"
#include "head/journal/environment_seal.h"
#include "runtime/base/status.h"

namespace troupe::head {

/// Behind a kVersionMismatch of DecodeRow: what to do.
inline constexpr char kNewerHint[] =
    "\n  start the head with the version of troupe that wrote it, or restore a backup from before "
    "that: troupe journal restore";

struct RowBytes {
  std::string payload;
  std::uint32_t crc = 0;
};

/// kTooLarge for an event that no frame could have carried either. With `seal`, variables in it are
/// encrypted.
StatusOr<RowBytes> EncodeRow(const Row& row, const EnvironmentSeal* seal = nullptr);
/// CRC32C over (sequence, payload, checksum of the attachment).
std::uint32_t RowCrc(std::uint64_t sequence, std::string_view payload, std::string_view attachment);
/// kInvalid when the checksum is wrong, kVersionMismatch when it is right and the event cannot be
/// read: a newer version wrote it. Without `seal` variables stay as they are kept.
StatusOr<wire::Event> DecodeRow(std::uint64_t sequence, std::string_view payload,
                                std::string_view attachment, std::uint32_t crc,
                                const EnvironmentSeal* seal = nullptr);

}  // namespace troupe::head
