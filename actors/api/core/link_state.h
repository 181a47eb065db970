// Rules by which a link to an actor follows the head's reports: states come in, orders go out, in
// their order. Pure; the rules are those of troupe/_actors/link_state.py, for a link that brings
// nothing to the constructor.
//
//   LS-1  Word may be overtaken by later word: of an actor that is alive, what is not of a later
//         life changes nothing.
//   LS-2  A life that is over ends what is under way to it, once; the next one gets calls, once,
//         when it is alive.
//   LS-3  An actor that is dead is so for good.
//   LS-4  Out of reach passes: calls end, and the first word of another kind begins anew.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::api {

enum class LinkOrder {
  kEnd,  // dead: all calls end
  kLoseSight,  // nobody knows what runs there: calls end, until there is word of it
  kRenew,      // there is: the next call takes another channel, with no error
  kRetire,     // the life that was known is over: calls under way to it end
  kAim,  // alive, and calls go there
};

class LinkState {
 public:
  std::vector<LinkOrder> Told(wire::ActorState state, std::uint64_t incarnation) {
    std::vector<LinkOrder> orders;
    if (dead_) return orders;
    if (state == wire::ActorState::kDead) {
      dead_ = true;
      return {LinkOrder::kEnd};
    }
    if (state == wire::ActorState::kUnavailable) {
      if (!out_of_reach_) orders.push_back(LinkOrder::kLoseSight);
      out_of_reach_ = true;
      alive_ = false;
      return orders;
    }
    if (out_of_reach_) orders.push_back(LinkOrder::kRenew);
    out_of_reach_ = false;
    const bool later = incarnation > incarnation_;
    if (state != wire::ActorState::kAlive) {
      if (alive_ && later) {
        alive_ = false;
        orders.push_back(LinkOrder::kRetire);
      }
    } else if (later || !alive_) {
      if (alive_) orders.push_back(LinkOrder::kRetire);
      incarnation_ = incarnation;
      alive_ = true;
      orders.push_back(LinkOrder::kAim);
    }
    return orders;
  }
  /// Marks the actor as not alive after its process disappeared, until the head reports what
  /// happened.
  void Suspect() { alive_ = false; }
  /// Marks the actor as dead without the head's report: this process killed it.
  void End() { dead_ = true; }

 private:
  std::uint64_t incarnation_ = 0;  // the life that is alive, or was
  bool alive_ = false;
  bool dead_ = false;
  bool out_of_reach_ = false;
};

}  // namespace troupe::api
