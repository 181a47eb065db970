// Requests of one end of a call session on its bulk link: values, in parts. Pure.
//
//   BP-1  At most kPartsMax parts are asked for and have not come: who sends needs no memory for
//         more, and nothing comes that there is no place for.
//   BP-2  Parts come in the order they were asked for. What else comes breaks the rules and ends
//         the link.
//   BP-3  Pulls take turns, part by part: a small value does not wait for the whole of a large one.
//   BP-4  On another link a pull goes on from the last byte that came; no byte is put in its place
//         twice.
//   BP-5  Parts of a pull that was given up are let pass; its bytes go nowhere.
//   BP-6  A pull ends once: with its last byte, kGone, or Cancel.
//
// Whose view: the mover's thread; not locked. A value's size is known with its first part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "actors/core/remote/bulk_frame.h"
#include "runtime/base/status.h"

namespace troupe::actors {

class BulkPulls {
 public:
  using PullId = std::uint64_t;  // never 0
  static constexpr std::size_t kPartsMax = 16;

  PullId Begin(const store::ObjectId& id);
  /// Gives a pull up: its bytes are not wanted any more.
  void Cancel(PullId pull) { pulls_.erase(pull); }
  bool empty() const { return pulls_.empty(); }
  std::vector<PullId> all() const;
  /// Parts were asked for and have not come.
  bool Awaits() const { return !asked_.empty(); }

  /// The link is gone; the next one begins with nothing asked for.
  void Unlinked();
  /// The next kRead to be sent, while there is room for one.
  std::optional<BulkFrame> NextAsk();

  struct Part {
    PullId pull = 0;     // 0: nobody's any more
    bool first = false;  // the size was not known before
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
  };
  /// A kPart begins: where its bytes are to go.
  StatusOr<Part> Begins(const BulkFrame& part);
  /// So many bytes of the part that began last came. True: its pull is over, and forgotten here.
  bool Came(std::uint64_t bytes);
  /// Bytes of the part that began last that are still to come.
  std::uint64_t coming() const { return coming_; }
  /// Returns the pull whose part began last; 0: none.
  PullId into() const { return into_; }
  /// A kGone came: whose pull is over, 0: nobody's.
  StatusOr<PullId> Gone(const BulkFrame& gone);

 private:
  struct Pull {
    store::ObjectId id;
    std::optional<std::uint64_t> total;
    std::uint64_t asked = 0;  // up to here
    std::uint64_t came = 0;
  };
  struct Asked {
    PullId pull;
    store::ObjectId id;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  bool Wants(const Pull& pull) const;

  std::map<PullId, Pull> pulls_;
  std::deque<Asked> asked_;
  PullId last_ = 0;  // begun
  PullId turn_ = 0;  // pull asked for last
  PullId into_ = 0;  // pull whose part is coming
  std::uint64_t coming_ = 0;
};

}  // namespace troupe::actors
