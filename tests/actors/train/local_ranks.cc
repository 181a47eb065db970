#include "tests/actors/train/local_ranks.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/async/real_clock.h"

namespace troupe::train {
namespace {

constexpr int kCards = 16;

}  // namespace

struct LocalTest::Page {
  char cards[kCards][512];
};

LocalTest::LocalTest(Layout layout)
    : layout_(std::move(layout)),
      page_(static_cast<Page*>(mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

LocalTest::~LocalTest() { munmap(page_, sizeof(Page)); }

Door LocalTest::Open(Rank& rank) {
  const int node = layout_[static_cast<std::size_t>(rank.index())];
  Door door = rank.Take(Door::Open("node-" + std::to_string(node)));
  if (layout_ != OneNode(size())) {
    const Status listens = door.Listen("127.0.0.1");
    rank.Require(listens.ok(), MessageOf(listens));
  }
  Publish(rank, door.card());
  return door;
}

void LocalTest::Publish(Rank& rank, const Card& card) {
  std::snprintf(page_->cards[rank.index()], sizeof page_->cards[0], "%s", card.Text().c_str());
  rank.board().Add("published");
}

std::vector<Card> LocalTest::Cards(Rank& rank) const {
  rank.Await("published", size());
  std::vector<Card> cards;
  for (int each = 0; each < size(); ++each)
    cards.push_back(rank.Take(Card::Parse(page_->cards[each])));
  return cards;
}

LocalMember::LocalMember(Rank& rank, LocalTest& test, const std::function<void(LocalSpec&)>& adapt)
    : rank_(rank),
      supervisor_(std::make_unique<Supervisor>(async::RealClock::Shared(), EndThisProcess)) {
  Door door = test.Open(rank);
  LocalSpec spec{.name = "dp",
                 .rank = rank.index(),
                 .size = test.size(),
                 .secret = test.secret(),
                 .cards = test.Cards(rank)};
  spec.times.form_max = std::chrono::seconds(kSecondsMax);
  spec.times.call_max = std::chrono::seconds(kSecondsMax);
  if (adapt) adapt(spec);
  group_ = LocalCommunicator::Form(*supervisor_, std::move(spec), std::move(door));
  const Status formed = group_->AwaitReady();
  rank.Require(formed.ok(), MessageOf(formed));
}

Status LocalMember::Try(const Operation& operation) {
  const auto work = group_->Start({&operation, 1});
  if (!work.ok()) return work.status();
  return (*work)->Wait(std::chrono::seconds(kSecondsMax));
}

void LocalMember::Run(const Operation& operation) {
  const Status status = Try(operation);
  rank_.Require(status.ok(), MessageOf(status));
}

}  // namespace troupe::train
