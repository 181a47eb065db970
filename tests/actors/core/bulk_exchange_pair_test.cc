// Two exchanges against each other: random gifts, pulls and results over a link that is cut
// anywhere and made anew, values as their sizes alone. Each pull ends once, each result is released
// once.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/core/remote/bulk_exchange.h"
#include "tests/actors/core/bulk_words.h"

namespace troupe::actors {
namespace {

/// An end of a simulated link: takes BulkLink's part over a real one. Values are their sizes.
struct End {
  BulkExchange exchange;
  std::map<store::ObjectId, std::uint64_t> sizes;  // sizes of its own values
  std::map<BulkExchange::PullId, store::ObjectId> pulls;  // not over
  std::map<BulkExchange::PullId, std::uint64_t> come;     // bytes of them
  std::set<store::ObjectId> results;                      // given as such, whose memory is held
  std::deque<BulkFrame> in;  // on the way to it; a kPart stands for its bytes too
  std::uint64_t round = 0;
};

class TwoEnds {
 public:
  explicit TwoEnds(unsigned seed) : random_(seed) {}

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      now_ += std::chrono::milliseconds(random_() % 50);
      switch (random_() % 12) {
        case 0:
          Change(Pick());
          break;
        case 1:
          if (random_() % 8 == 0) Cut();
          break;
        default:
          Turn(Pick());
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  /// Nothing more begins; what is under way ends.
  void Settle() {
    for (int turns = 0; turns < 4000; ++turns) {
      if (!linked_) Relink();
      for (End* end : {&a_, &b_}) Turn(*end);
    }
    for (End* end : {&a_, &b_}) {
      EXPECT_TRUE(end->pulls.empty()) << "each pull ends";
      EXPECT_TRUE(end->results.empty()) << "each result was taken";
      EXPECT_FALSE(end->exchange.Deadline({}));
      for (const auto& [id, size] : end->sizes) end->exchange.TakeBack(id);
      EXPECT_FALSE(end->exchange.WantsLink({}));
    }
  }
  std::uint64_t ended() const { return ended_; }

 private:
  End& Pick() { return random_() % 2 == 0 ? a_ : b_; }
  End& Other(End& end) { return &end == &a_ ? b_ : a_; }

  /// Something is made, given, and pulled at the other end: as a value that stays, or as a result
  /// that is taken.
  void Change(End& end) {
    const store::ObjectId id{ProcessId(1, &end == &a_ ? 1 : 2), ++made_};
    const std::uint64_t size = 1 + random_() % (4 * kBulkPartBytes);
    end.sizes[id] = size;
    const bool result = random_() % 2 == 0;
    if (result) {
      end.exchange.GiveResult(id, {});
      end.results.insert(id);
    } else {
      end.exchange.Give(id);
    }
    End& other = Other(end);
    if (result && random_() % 4 == 0) return other.exchange.Took(id);  // nobody wants it
    const BulkExchange::PullId pull = other.exchange.BeginPull(id, false, {}, now_);
    other.pulls[pull] = id;
    other.come[pull] = 0;
  }
  void Cut() {
    for (End* end : {&a_, &b_}) {
      end->exchange.Unlinked(now_);
      end->in.clear();
    }
    linked_ = false;
    if (random_() % 2 == 0) Relink();
  }
  void Relink() {
    for (End* end : {&a_, &b_}) end->exchange.Linked({}, now_);
    linked_ = true;
  }
  void Turn(End& end) {
    ++end.round;
    if (!linked_) return random_() % 4 == 0 ? Relink() : void();
    for (std::size_t some = random_() % 4; some > 0 && !end.in.empty(); --some) Receive(end);
    if (linked_) Send(end);
  }
  void Receive(End& end) {
    const BulkFrame frame = end.in.front();
    end.in.pop_front();
    end.exchange.Heard(now_);
    const StatusOr<BulkExchange::Order> order = end.exchange.Take(frame);
    ASSERT_TRUE(order.ok()) << MessageOf(order.status());
    ASSERT_NE(order->what, BulkExchange::Order::What::kGone)
        << "what is given stays so here until it is taken";
    if (order->what != BulkExchange::Order::What::kPart) return;
    const BulkExchange::PullId pull = order->part.pull;
    ASSERT_EQ(end.pulls.count(pull), 1u) << "BX-5";
    ASSERT_EQ(order->part.offset, end.come[pull]);
    if (random_() % 20 == 0 && order->part.bytes > 1) {  // the link ends within the part
      end.come[pull] += order->part.bytes / 2;
      ASSERT_FALSE(end.exchange.Came(order->part.bytes / 2));
      return Cut();
    }
    end.come[pull] += order->part.bytes;
    const bool whole = end.exchange.Came(order->part.bytes);
    const store::ObjectId id = end.pulls[pull];
    ASSERT_EQ(whole, end.come[pull] == Other(end).sizes.at(id));
    if (!whole) return;
    ++ended_;
    end.pulls.erase(pull);
    if (Other(end).results.count(id) != 0) end.exchange.Took(id);
  }
  void Send(End& end) {
    std::string out;
    std::vector<store::ObjectId> released;
    end.exchange.AppendWords(out);
    end.exchange.AppendDropped(end.round, out, released);
    for (const store::ObjectId& id : released) {
      ASSERT_EQ(end.results.erase(id), 1u) << "a result is released once";
      for (const auto& [pull, pulled] : Other(end).pulls)
        ASSERT_FALSE(pulled == id) << "and not while it is pulled";
    }
    end.exchange.AppendAsks(out);
    if (out.empty() && end.exchange.first_read() != nullptr) {
      const BulkFrame read = *end.exchange.first_read();
      if (end.exchange.SettleRead(false, end.round))
        BulkExchange::AppendPart(read, end.sizes.at(read.id), out);
    }
    for (const BulkFrame& frame : FramesOf(out)) Other(end).in.push_back(frame);
  }

  std::mt19937 random_;
  Instant now_ = Instant(std::chrono::seconds(1000));
  End a_, b_;
  bool linked_ = false;
  std::uint64_t made_ = 0;
  std::uint64_t ended_ = 0;
};

TEST(BulkExchange, BX1_BX3_BX5_OverAnyLinkEachPullEndsAndEachResultIsReleasedOnce) {
  std::uint64_t ended = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    TwoEnds ends(seed);
    ends.Run(1500);
    if (HasFatalFailure()) return;
    ends.Settle();
    ASSERT_FALSE(HasFailure());
    ended += ends.ended();
  }
  EXPECT_GT(ended, 200u * 20u) << "or nothing was tried";
}

}  // namespace
}  // namespace troupe::actors
