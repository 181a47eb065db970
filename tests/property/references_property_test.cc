// Method: one owner's table against a multiset of who holds what. Random messages of four
// borrowers, each repeated, cut off, sent again and held back at random; borrowers die or are
// struck. After each step the table must know exactly the holders the multiset has, and must have
// freed what has none.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/store/core/references.h"

namespace troupe::store {
namespace {

constexpr std::size_t kBorrowers = 4;
const ProcessId kOwner(1, 1);

// A borrower as the owner sees it: a stream of frames, of which some have arrived.
struct Borrower {
  ProcessId id;
  std::uint64_t connection = 0;
  std::uint64_t sent = 0;
  std::vector<ControlFrame> frames;                        // all it ever wrote
  std::size_t arrived = 0;  // number of those
  std::map<std::uint64_t, std::set<std::uint64_t>> loans;  // object -> open loans it was given
  bool gone = false;
};

class Oracle {
 public:
  explicit Oracle(std::uint64_t seed) : random_(seed), table_(kOwner) {
    for (std::size_t i = 0; i < kBorrowers; ++i) {
      borrowers_.push_back({ProcessId(2 + i, 1), 0, 0, {}, 0, {}, false});
      Connect(borrowers_.back());
    }
  }

  void Step() {
    now_ += std::chrono::milliseconds(1);
    const std::uint64_t draw = random_.Below(100);
    Borrower& b = borrowers_[random_.Below(kBorrowers)];
    if (draw < 10) {
      held_[table_.Put(Value::Inline("v"), {}, now_).sequence].insert(kOwner);
    } else if (draw < 20) {
      OwnHandle();
    } else if (draw < 35) {
      Lend(b);
    } else if (draw < 60) {
      Write(b);
    } else if (draw < 85) {
      Arrive(b);
    } else if (draw < 92) {
      Repeat(b);
    } else if (draw < 99) {
      Connect(b);
    } else if (random_.Chance(100)) {
      End(b);
    }
    static_cast<void>(table_.TakeEffects());
    Compare();
  }

 private:
  ObjectId IdOf(std::uint64_t sequence) const { return {kOwner, sequence}; }
  std::uint64_t Any() {
    auto at = held_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.Below(held_.size())));
    return at->first;
  }

  void OwnHandle() {
    if (held_.empty()) return;
    const std::uint64_t object = Any();
    auto& holders = held_[object];
    if (holders.count(kOwner) != 0 && random_.Chance(600)) {
      table_.DropHandle(IdOf(object), now_);
      holders.erase(holders.find(kOwner));
    } else {
      table_.AddHandle(IdOf(object));
      holders.insert(kOwner);
    }
    Clean();
  }
  void Lend(Borrower& b) {
    if (held_.empty() || b.gone) return;
    const std::uint64_t object = Any();
    const Lent lent = table_.Lend(IdOf(object), b.id, now_);
    ASSERT_NE(lent.handed.loan, 0u);
    held_[object].insert(b.id);  // a loan is a holder like any other
    b.loans[object].insert(lent.handed.loan);
  }
  // The borrower writes a frame: it settles a loan, registers with or without one, or drops.
  void Write(Borrower& b) {
    if (b.gone) return;
    ControlFrame frame;
    frame.n = ++b.sent;
    const std::uint64_t object = 1 + random_.Below(next_guess_ + 2);
    const std::uint64_t draw = random_.Below(3);
    std::uint64_t loan = 0;
    const auto loans = b.loans.find(object);
    if (loans != b.loans.end() && !loans->second.empty() && random_.Chance(800)) {
      loan = *loans->second.begin();
      loans->second.erase(loan);
    }
    if (draw == 0 && loan != 0) {
      frame.body = Settle{loan, random_.Chance(800)};
    } else if (draw != 2) {
      frame.body = Hold{IdOf(object), loan};
    } else {
      if (loan != 0) b.loans[object].insert(loan);
      frame.body = Drop{IdOf(object), random_.Chance(800)};
    }
    next_guess_ = std::max<std::uint64_t>(next_guess_, held_.empty() ? 0 : held_.rbegin()->first);
    loan_object_[{b.id, loan}] = object;
    b.frames.push_back(frame);
  }
  void Arrive(Borrower& b) {
    if (b.gone || b.arrived == b.frames.size()) return;
    const ControlFrame& frame = b.frames[b.arrived++];
    ASSERT_TRUE(table_.Frame(b.id, b.connection, 0, frame, now_));
    if (const auto* settle = std::get_if<Settle>(&frame.body)) {
      Remove(loan_object_[{b.id, settle->loan}], b.id);
    } else if (const auto* hold = std::get_if<Hold>(&frame.body)) {
      const std::uint64_t object = hold->object.sequence;
      const bool alive = held_.count(object) != 0;
      if (alive && listed_[object].insert(b.id).second) held_[object].insert(b.id);
      if (hold->settles != 0) Remove(loan_object_[{b.id, hold->settles}], b.id);
    } else if (const auto* drop = std::get_if<Drop>(&frame.body)) {
      const std::uint64_t object = drop->object.sequence;
      if (listed_[object].erase(b.id) != 0) Remove(object, b.id);
    }
    Clean();
  }
  // O5: what has arrived before, by this connection or an older one, changes nothing.
  void Repeat(Borrower& b) {
    if (b.gone || b.arrived == 0) return;
    const ControlFrame& frame = b.frames[random_.Below(b.arrived)];
    const bool old = random_.Chance(500);
    EXPECT_EQ(table_.Frame(b.id, old ? b.connection - 1 : b.connection, 0, frame, now_), !old);
  }
  void Connect(Borrower& b) {
    if (b.gone) return;
    if (b.connection != 0 && random_.Chance(500)) table_.Disconnected(b.id, b.connection, now_);
    EXPECT_EQ(table_.Connected(b.id, ++b.connection + 1, 0, now_), Greeting::kResumed);
    ++b.connection;
  }
  void End(Borrower& b) {
    if (b.gone) return;
    b.gone = true;
    if (random_.Chance(500)) {
      table_.Refused(b.id, now_);
    } else {
      table_.Dead(b.id, "killed", now_);
      now_ += std::chrono::seconds(1);
      table_.Expire(now_);
    }
    for (auto& [object, holders] : held_) holders.erase(b.id);
    for (auto& [object, borrowers] : listed_) borrowers.erase(b.id);
    Clean();
  }
  void Remove(std::uint64_t object, const ProcessId& who) {
    const auto found = held_.find(object);
    if (found == held_.end()) return;
    const auto one = found->second.find(who);
    if (one != found->second.end()) found->second.erase(one);
  }
  void Clean() {
    for (auto at = held_.begin(); at != held_.end();) {
      if (!at->second.empty()) {
        ++at;
        continue;
      }
      listed_.erase(at->first);
      at = held_.erase(at);
    }
  }
  void Compare() {
    const State& state = table_.state();
    ASSERT_EQ(state.owned.size(), held_.size());
    for (const auto& [sequence, own] : state.owned) {
      std::multiset<ProcessId> holders;
      for (std::uint64_t n = own.holds.handles; n > 0; --n) holders.insert(kOwner);
      for (const ProcessId& borrower : own.borrowers) holders.insert(borrower);
      for (const auto& [to, loan] : own.loans) holders.insert(to);
      ASSERT_EQ(holders, held_[sequence]) << "object " << sequence;
    }
  }

  Prng random_;
  References table_;
  Instant now_{std::chrono::seconds(1)};
  std::vector<Borrower> borrowers_;
  std::map<std::uint64_t, std::multiset<ProcessId>> held_;
  std::map<std::uint64_t, std::set<ProcessId>> listed_;
  std::map<LoanKey, std::uint64_t> loan_object_;
  std::uint64_t next_guess_ = 0;
};

TEST(ReferencesProperty, O2_O5_TheTableIsAMultisetOfHolders) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Oracle oracle(seed);
    for (int step = 0; step < 400 && !::testing::Test::HasFatalFailure(); ++step) oracle.Step();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(ReferencesProperty, LoansMayArriveInAnyOrderAndCountOnce) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    ReceivedLoans received;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t loan = 1 + random.Below(60);
      const bool fresh = seen.insert(loan).second;
      ASSERT_EQ(received.Add(loan) == ReceivedLoans::Added::kNew, fresh) << "seed " << seed;
    }
  }
  ReceivedLoans far;
  for (std::uint64_t n = 0; n < ReceivedLoans::kAheadMax; ++n)
    ASSERT_EQ(far.Add(2 + 2 * n), ReceivedLoans::Added::kNew);
  EXPECT_EQ(far.Add(1u << 30), ReceivedLoans::Added::kTooFar);
}

}  // namespace
}  // namespace troupe::store
