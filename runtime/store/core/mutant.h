// The model's mutants (model/objects.pml) as switches, so that the simulator can show that it would
// catch each. Only the simulator's own build of this folder has them; elsewhere every question is
// constant false and the code behind it is gone.
#pragma once

#include <cstdint>

namespace troupe::store {

enum class Mutant : std::uint8_t {
  kNone,
  kEofReleases,      // a lost connection counts as a release
  kTimeoutForgets,   // so does silence beyond the resume window
  kDeathReleases,    // so does death, though a forked child may read on
  kForkClean,        // a release after a fork is called clean
  kDupDrop,          // frames that were applied, and those of older connections, are applied again
  kViewUncounted,    // an array over a mapping does not keep the reference
  kMapAfterRelease,  // mapping is allowed while the release is under way
  kStaleLicence,     // a settled loan still licenses reading
  kRecallClean,      // a recalled loan is settled as clean although it was received and read
  kNoResend,         // nothing is sent again when a connection is resumed
  kNoOwnerVerdict,   // the owner's death changes nothing
  kNoBorrowerVerdict,   // a borrower's death changes nothing
  kNoLoanPin,           // a reference is released while it is lent on
  kSettleEarly,         // the lender is told before the owner has listed the receiver
  kLoanForgotten,       // loans whose carrier was lost are never recalled
  kFreeUnfenced,        // a late Free frees whatever the slot holds now
  kOwnerDeathRecycles,  // an owner's death is taken as a clean release
  kDupReply,            // a second reply replaces the first
  kVerdictBeforeDrain,  // the keeper asks before it has read what the maker had sent
  kNoAdoptAnswer,       // the owner does not answer the keeper
  kReplyBeforeAssign,   // the maker replies first and tells the keeper afterwards
  kAnswerBeforeClose,   // the owner answers the keeper and goes on reading the maker's replies
  kDropAtDeath,         // the keeper drops what a dead maker had assigned
  kLast,
};

#ifdef TROUPE_STORE_MUTANTS
inline Mutant active_mutant = Mutant::kNone;
inline bool Is(Mutant mutant) { return active_mutant == mutant; }
#else
constexpr bool Is(Mutant) { return false; }
#endif

}  // namespace troupe::store
