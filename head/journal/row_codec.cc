#include "head/journal/row_codec.h"

#include <utility>

#include "runtime/net/digest.h"
#include "runtime/wire/codec.h"

namespace troupe::head {
namespace {

void PutNumber(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

std::uint32_t RowCrc(std::uint64_t sequence, std::string_view payload,
                     std::string_view attachment) {
  std::string bytes;
  bytes.reserve(payload.size() + 12);
  PutNumber(bytes, sequence, 8);
  bytes.append(payload);
  PutNumber(bytes, net::Crc32c(attachment), 4);
  return net::Crc32c(bytes);
}

StatusOr<RowBytes> EncodeRow(const Row& row, const EnvironmentSeal* seal) {
  RowBytes out;
  if (seal != nullptr && EnvironmentSeal::Concerns(row.event.body)) {
    wire::Event sealed;
    sealed.body = row.event.body;
    TROUPE_TRY(seal->Seal(sealed.body));
    TROUPE_ASSIGN(out.payload, wire::EncodeEvent(sealed));
  } else {
    TROUPE_ASSIGN(out.payload, wire::EncodeEvent(row.event));
  }
  out.crc = RowCrc(row.sequence, out.payload, row.event.attachment);
  return out;
}

StatusOr<wire::Event> DecodeRow(std::uint64_t sequence, std::string_view payload,
                                std::string_view attachment, std::uint32_t crc,
                                const EnvironmentSeal* seal) {
  if (RowCrc(sequence, payload, attachment) != crc) {
    return MakeError(ErrorCode::kInvalid,
                     "event " + std::to_string(sequence) + " does not match its checksum");
  }
  StatusOr<wire::Event> decoded = wire::DecodeEvent(payload);
  if (!decoded.ok()) {
    return MakeError(ErrorCode::kVersionMismatch,
                     "event " + std::to_string(sequence) +
                         " is whole, but this version of troupe does not know it: " +
                         MessageOf(decoded.status()));
  }
  wire::Event event = *std::move(decoded);
  if (seal != nullptr) {
    const Status opened = seal->Unseal(event.body);
    if (!opened.ok())
      return MakeError(ErrorCode::kInvalid,
                       "event " + std::to_string(sequence) + ": " + MessageOf(opened));
  }
  event.attachment = std::string(attachment);
  return event;
}

}  // namespace troupe::head
