// The target of calls that had to wait for their arguments: a channel, as `PendingCalls` knows it.
//
// Thread-safe. Its mutex comes after the line's: whoever calls this may hold that one.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/bulk/bulk_session.h"
#include "actors/core/call/byte_buffer.h"
#include "actors/slots/answer.h"
#include "actors/slots/item_stream.h"

namespace troupe::actors {

class PendingTarget {
 public:
  /// The actor's place: arguments that it can map are named to it, not copied.
  enum class Place : std::uint8_t { kUnknown, kHere, kRemote };

  virtual ~PendingTarget() = default;
  /// Returns true if a call made now may still be answered by the actor.
  virtual bool Usable() = 0;
  /// An answer that is done when there is room for a call, or never will be; none: there is now.
  virtual AnswerRef WhenRoom() = 0;
  virtual Place place() const = 0;
  /// Returns the session for large values that a call names, unless the actor is on this host;
  /// nullptr: it is, or there is no descriptor left.
  virtual std::shared_ptr<BulkSession> Bulk() = 0;
  /// Takes a call whatever there is room for, with the answer that its caller has. It is answered
  /// at once where the target is over.
  virtual void IssueKept(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                         std::shared_ptr<ItemStream> items) = 0;
  /// So many items of the call with this answer are taken, in all.
  virtual void Taken(const Answer* answer, std::uint64_t items) = 0;
  /// Writes what the socket takes.
  virtual void Flush() = 0;
};

}  // namespace troupe::actors
