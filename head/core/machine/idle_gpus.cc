#include "head/core/machine/idle_gpus.h"

namespace troupe::head {

std::vector<IdleGpus::Idle> IdleGpus::See(const std::vector<Look>& looks, Instant now,
                                          Duration after) {
  std::erase_if(spells_, [&](const auto& each) { return now - each.second.seen > kLookPause; });
  std::vector<Idle> due;
  for (const Look& look : looks) {
    if (look.holder.IsNil() || look.ratio >= kIdleRatio) {
      spells_.erase(look.gpu);
      continue;
    }
    Spell& spell = spells_[look.gpu];
    if (spell.holder != look.holder) spell = {look.holder, now, now, false};
    spell.seen = now;
    if (spell.told || now - spell.since < after) continue;
    spell.told = true;
    due.push_back({look.gpu, look.holder, now - spell.since});
  }
  return due;
}

std::vector<IdleGpus::Idle> IdleGpus::Told(Instant now) const {
  std::vector<Idle> told;
  for (const auto& [gpu, spell] : spells_) {
    if (spell.told && now - spell.seen <= kLookPause)
      told.push_back({gpu, spell.holder, now - spell.since});
  }
  return told;
}

}  // namespace troupe::head
