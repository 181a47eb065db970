// Messages of two processes about references: the bodies of control frames. Plain values.
//
// Each travels in a numbered control stream (control_stream.h), so each is applied exactly once and
// in the order it was written, or its peer has been struck.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/store/core/object_id.h"
#include "runtime/store/core/value.h"

namespace troupe::store {

/// A reference that is sent: in a call, a reply, or inside a value. Loan 0: its sender has nothing
/// to lend (the owner is dead to it); the receiver learns the same from the owner or from its
/// verdict.
struct Handed {
  ObjectId object;
  std::uint64_t loan = 0;
};

/// A value with the references that lie inside, each lent along.
struct Answer {
  Value value;
  std::vector<Handed> contained;
};

/// Borrower to owner: I hold it. `settles`: the owner's own loan that this makes needless, or 0.
struct Hold {
  ObjectId object;
  std::uint64_t settles = 0;
};
/// Owner to borrower: you are listed; this is its value, which may be pending.
struct HoldOk {
  ObjectId object;
  Answer answer;
};
/// Owner to borrower: there is no such object any more.
struct Gone {
  ObjectId object;
};
/// Owner to a listed borrower: it has ended, or it is lost, or a location of it is gone.
struct Changed {
  ObjectId object;
  Answer answer;
};
/// Receiver to lender: that loan is over. Not clean: a fork happened while it was read.
struct Settle {
  std::uint64_t loan = 0;
  bool clean = true;
};
/// Lender to receiver: what carried that loan will not be sent again. If it did not arrive, settle
/// it.
struct Recall {
  std::uint64_t loan = 0;
};
/// Borrower to owner: I hold it no more. Not clean: a fork happened while a view of it lived.
struct Drop {
  ObjectId object;
  bool clean = true;
};
/// Owner to maker: what this slot held as that generation is read by nobody who is left (`clean`),
/// or by somebody unknown.
struct Free {
  SlotId slot;
  std::uint64_t generation = 0;
  bool clean = true;
};
/// Maker to owner: the reply with that value will not be sent again. If it did not arrive, free the
/// slot.
struct Withdraw {
  ObjectId object;
  Location location;
};

using ControlBody = std::variant<Hold, HoldOk, Gone, Changed, Settle, Recall, Drop, Free, Withdraw>;

struct ControlFrame {
  std::uint64_t n = 0;
  ControlBody body;
};

}  // namespace troupe::store
