// Decisions of one end of a call session between hosts about large values: what the other end may
// read, what is pulled from it, which results are still to be taken, and when waiting for it ends.
// Pure: words and the time come in, words and orders go out. BulkLink (bulk/bulk_link.h) has the
// socket, the memory and the handles, and does what is decided here; the simulated pair in the
// tests has none of them.
//
//   BX-1  The other end may read what was given to it until as many takings back, and a result,
//         with what lies inside it, until that is taken or withdrawn; nothing else, unless it is
//         lent to it.
//   BX-2  It may ask before the word that gives was run here: that something is not given, or a
//         result not known, is said in the second round after the question
//         (policy/denial_delay.h), and not before.
//   BX-3  That a result is not needed any more is said again on each link, until the other end
//         answers.
//   BX-4  What waits to be answered is limited. Who asks for more than kReadsMax parts, has more
//         to say of results than kWordsMax bytes, or says hello twice, breaks the rules.
//   BX-5  A pull ends once: with its last byte, kGone, or a Cancel; a lost link does not end it.
//   BX-6  If nothing comes for kSilence while something is awaited, all pulls end and the link is
//         of no use. Counted from the last byte, the link's begin, or the begin of what is
//         awaited first.
//   BX-7  If neither of the session's connections is there for kKept, results are nobody's any
//         more, and so is what is held of references.
//   BX-8  A link is wanted while something is given, pulled or said, and for references: those
//         lent and held, and, while the other end is there, those that it has not heard were let
//         go of.
//
// Whose view: the mover's thread; not locked. References have their own rules (remote_held.h,
// remote_lent.h): what they come to is passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/core/policy/denial_delay.h"
#include "actors/core/remote/bulk_frame.h"
#include "actors/core/remote/bulk_pulls.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class BulkExchange {
 public:
  using PullId = BulkPulls::PullId;
  static constexpr std::size_t kReadsMax = 64;
  static constexpr std::size_t kWordsMax = 8u << 20;
  static constexpr std::chrono::seconds kSilence{30};
  static constexpr std::chrono::seconds kKept{30};

  /// The sum of the references between the two ends.
  struct Refs {
    bool awaits = false;  // the other end owes an answer, or a value
    bool idle = true;     // none is held or lent
    bool over = true;     // none that a link would have to be made for
  };

  // -- what is given --
  void Give(const store::ObjectId& id) { ++given_[id]; }
  void TakeBack(const store::ObjectId& id);
  void GiveResult(const store::ObjectId& id, std::vector<store::ObjectId> inside);
  void WithdrawResult(const store::ObjectId& id);
  bool Gives(const store::ObjectId& id) const {
    return given_.count(id) != 0 || results_.count(id) != 0;
  }
  /// A result is here for somebody who may come for it.
  bool AwaitsTaker() const { return !results_.empty() && (attached_ || linked_); }

  // -- what is pulled and awaited --
  /// `of_ref`: the value of a reference, which outlives the session's calls.
  PullId BeginPull(const store::ObjectId& id, bool of_ref, const Refs& refs, Instant now);
  /// References are about to be awaited.
  void BeginAwaiting(const Refs& refs, Instant now);
  void Cancel(PullId pull);
  /// All pulls, or all but those of references' values: which ones they were.
  std::vector<PullId> CancelPulls(bool of_refs);
  /// A result of the other end's is not needed any more.
  void Took(const store::ObjectId& id);
  /// The session's calls are over: nothing is given to them, nothing is said of their results.
  void EndCalls(Instant now);

  // -- the two connections, and time --
  /// Whether the session's call connection is there.
  void Attached(bool attached, Instant now);
  /// `hello` is said first.
  void Linked(std::string hello, Instant now);
  void Unlinked(Instant now);
  /// Bytes came over the link.
  void Heard(Instant now);
  /// Returns true if references have reported, since it is there.
  bool heard() const { return heard_; }
  bool WantsLink(const Refs& refs) const;
  bool RefsSettled(const Refs& refs) const { return attached_ ? refs.idle : refs.over; }
  /// Returns true if the exchange of a session is over whose calls are.
  bool Over(const Refs& refs) const { return linked_ ? refs.idle : refs.over; }
  /// When to look at the next two; nullopt: nothing is waited for.
  std::optional<Instant> Deadline(const Refs& refs) const;
  /// BX-7. True: the results are forgotten, whatever is held or lent is to be.
  bool GiveUpDeserted(Instant now);
  /// BX-6. True: all pulls are to end.
  bool Silent(const Refs& refs, Instant now) const;

  // -- what comes --
  struct Order {
    enum class What {
      kNothing,
      kPart,  // the part's bytes come next: into `part`'s pull, or, for a pull that is over,
              // nowhere
      kGone,     // `part`'s pull is over: the other end has let go of what it asked for
      kRefWord,  // for RemoteRefs to read
    };
    What what = What::kNothing;
    BulkPulls::Part part;
  };
  /// An error: it breaks the rules.
  StatusOr<Order> Take(const BulkFrame& frame);
  /// How many bytes of a part are still to come, and into which pull; 0: nobody's.
  std::uint64_t coming() const { return pulls_.coming(); }
  PullId into() const { return pulls_.into(); }
  /// So many of them came. True: that pull is over, its value whole.
  bool Came(std::uint64_t bytes);

  // -- what goes, in this order --
  /// What is to be said before all else.
  void AppendWords(std::string& out);
  /// Answers about results; those that `released` gets were taken. False: not all could be
  /// settled in this round.
  bool AppendDropped(std::uint64_t round, std::string& out, std::vector<store::ObjectId>& released);
  /// Asks for parts.
  void AppendAsks(std::string& out);
  /// Returns the other end's first read request; nullptr: none.
  const BulkFrame* first_read() const { return reads_.empty() ? nullptr : &reads_.front(); }
  /// `lent`: it may read that as a reference. False: in a later round. True: it is to be
  /// answered, and off the list.
  bool SettleRead(bool lent, std::uint64_t round);
  /// Answers a kRead of a value of so many bytes; 0: it is not given, or not there. How many of
  /// its bytes, from the offset that was asked for, are to follow.
  static std::uint64_t AppendPart(const BulkFrame& read, std::uint64_t value_bytes,
                                  std::string& out);

 private:
  bool Awaits(const Refs& refs) const { return !pulls_.empty() || refs.awaits; }
  StatusOr<Order> TakeTaken(const store::ObjectId& id);

  std::map<store::ObjectId, std::uint64_t> given_;                   // and how often
  std::map<store::ObjectId, std::vector<store::ObjectId>> results_;  // and what lies inside
  std::set<store::ObjectId> took_;  // and the other end has not said kDropped
  BulkPulls pulls_;
  std::set<PullId> of_refs_;
  bool attached_ = true;
  bool linked_ = false;
  Instant progress_{};
  Instant lonely_since_{};  // neither connection is there
  bool heard_ = false;
  std::deque<BulkFrame> reads_;
  Doubt read_doubt_;                   // about the first of them
  std::deque<store::ObjectId> taken_;  // results that the other end needs no more
  Doubt taken_doubt_;
  std::string words_;
};

}  // namespace troupe::actors
