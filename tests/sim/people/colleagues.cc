#include "tests/sim/people/colleagues.h"

#include <utility>

namespace troupe::sim {
namespace {

using placement::kUnit;
using wire::CapKind;

constexpr const char* kNames[] = {"alice", "bob", "carol"};
constexpr std::uint64_t kChaosMs = 20'000;

}  // namespace

wire::TokenWritten TokenOf(const std::string& owner, std::uint64_t number) {
  wire::TokenWritten token;
  token.id = TokenId(8, number);
  token.role = wire::Role::kClient;
  token.user = owner;
  token.expires_us = ~0ull / 2;
  return token;
}

void Watch(HeadHost& head, PeopleChecker& checker) {
  head.after_step = [&head, &checker](const head::State& state) {
    checker.OnState(state, head.life());
  };
  head.on_crash = [&checker] { checker.OnCrash(); };
}

Colleagues::Colleagues(std::uint64_t seed, SimLoop& loop, const FaultPlan& plan, Checker& checker,
                       HeadHost& head, std::size_t workers)
    : loop_(loop),
      checker_(checker),
      head_(head),
      workers_(workers),
      random_(seed ^ 0x70656f706c65),
      administrator_(loop, plan, checker, head),
      people_(loop, checker) {
  if (random_.Chance(500)) return;
  const std::uint64_t count = 1 + random_.Below(3);
  for (std::uint64_t i = 0; i < count; ++i) owners_.emplace_back(kNames[i]);
}

void Colleagues::Start(const std::vector<std::unique_ptr<ClientHost>>& clients) {
  if (owners_.empty()) return;
  head_.options.user = "root";
  for (std::size_t i = 0; i < owners_.size(); ++i)
    head_.options.tokens.push_back(TokenOf(owners_[i], i + 1));
  for (const auto& client : clients) {
    // A client in so many comes as the administrator.
    const std::uint64_t owner = random_.Below(owners_.size() + 1);
    if (owner < owners_.size()) client->token = head_.options.tokens[owner].id;
  }
  Watch(head_, people_);
  administrator_.Start();
  for (const std::string& owner : owners_) {
    for (std::uint64_t left = 1 + random_.Below(5); left > 0; --left) {
      loop_.In(Ms(random_.Below(kChaosMs)), "set quota",
               [this, owner, caps = DrawCaps()] { administrator_.Set(owner, caps); });
    }
  }
}

head::Caps Colleagues::DrawCaps() {
  head::Caps caps;
  if (random_.Chance(500)) caps[CapKind::kGpus] = random_.Below(4) * kUnit;
  if (random_.Chance(500)) caps[CapKind::kCpus] = random_.Below(9) * kUnit / 2;
  if (random_.Chance(500)) caps[CapKind::kRunning] = random_.Below(4);
  if (random_.Chance(500)) caps[CapKind::kQueued] = random_.Below(4);
  return caps;
}

void Colleagues::Heal() {
  for (const std::string& owner : owners_) {
    head::Caps caps;
    // The largest launch beside all actors that keep their half CPU until the end.
    if (random_.Chance(500)) caps[CapKind::kCpus] = (2 * workers_ + 2 + random_.Below(3)) * kUnit;
    if (random_.Chance(500)) caps[CapKind::kGpus] = 2 * workers_ * kUnit;
    if (random_.Chance(500)) caps[CapKind::kRunning] = 1 + random_.Below(3);
    if (random_.Chance(500)) caps[CapKind::kQueued] = 1 + random_.Below(3);
    administrator_.Set(owner, std::move(caps));
  }
}

void Colleagues::CheckEnd() {
  checker_.Expect(owners_.empty() || administrator_.satisfied(),
                  "L1: the administrator never heard of a quota");
}

}  // namespace troupe::sim
