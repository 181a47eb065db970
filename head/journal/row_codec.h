// One row of the journal as bytes: the encoded event, its attachment, and a checksum over both and
// the sequence number, so that neither a flipped bit nor a row in a wrong place goes unseen.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "head/core/io.h"
#include "head/journal/environment_seal.h"
#include "runtime/base/status.h"

namespace troupe::head {

struct RowBytes {
  std::string payload;
  std::uint32_t crc = 0;
};

/// kTooLarge for an event that no frame could have carried either. With `seal`, variables in it are
/// encrypted.
StatusOr<RowBytes> EncodeRow(const Row& row, const EnvironmentSeal* seal = nullptr);
/// CRC32C over (sequence, payload, checksum of the attachment).
std::uint32_t RowCrc(std::uint64_t sequence, std::string_view payload, std::string_view attachment);
/// kInvalid when the checksum or the event's bytes are wrong. Without `seal` variables stay as they
/// are kept.
StatusOr<wire::Event> DecodeRow(std::uint64_t sequence, std::string_view payload,
                                std::string_view attachment, std::uint32_t crc,
                                const EnvironmentSeal* seal = nullptr);

}  // namespace troupe::head
