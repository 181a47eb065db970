// The rules of actors/core/remote/remote_names.h by their numbers; and all of them together against
// a plain model: random stand-ins, borrowed names, lives that are handed on and ends, where after
// each step every question is asked again.
#include "actors/core/remote/remote_names.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors {
namespace {

using Tell = RemoteNames::Tell;
using Handle = RemoteNames::Handle;

const ProcessId kSelf(1, 1);
const ProcessId kNeighbour(2, 2);
const ProcessId kElsewhere(3, 3);

store::ObjectId Own(std::uint64_t number) { return {kSelf, number}; }
store::ObjectId Beside(std::uint64_t number) { return {kNeighbour, number}; }
store::ObjectId Remote(std::uint64_t number) { return {kElsewhere, number}; }
store::ObjectId Life(store::ObjectId id) {
  id.sequence |= store::kLifeBit;
  return id;
}

TEST(RemoteNames, RN1_WhatHasAnotherNameIsFoundByEither) {
  RemoteNames names(kSelf);
  EXPECT_EQ(names.NameOf(Own(1)), Own(1));
  EXPECT_EQ(names.Here(Remote(1)), Remote(1)) << "nothing is known of it";
  names.StandFor(Own(1), Remote(1));
  EXPECT_EQ(names.NameOf(Own(1)), Remote(1));
  EXPECT_EQ(names.Here(Remote(1)), Own(1));
  names.Call(Beside(7), Remote(2));
  names.Call(Beside(7), Remote(3));
  EXPECT_EQ(names.NameOf(Beside(7)), Remote(2)) << "it has a name already";
  EXPECT_EQ(names.Here(Remote(2)), Beside(7));
  EXPECT_EQ(names.Here(Remote(3)), Remote(3));
  names.Call(Beside(8), Beside(8));
  EXPECT_EQ(names.NameOf(Beside(8)), Beside(8));
}

TEST(RemoteNames, RN1_TheEndOfAnEarlierBearerLeavesTheLatest) {
  RemoteNames names(kSelf);
  names.StandFor(Own(1), Remote(1));
  names.StandFor(Own(2), Remote(1));
  EXPECT_EQ(names.Here(Remote(1)), Own(2));
  EXPECT_EQ(names.NameOf(Own(1)), Remote(1)) << "it is still called so";
  EXPECT_EQ(names.Forget(Own(1)), Remote(1));
  EXPECT_EQ(names.Here(Remote(1)), Own(2));
  EXPECT_EQ(names.Forget(Own(2)), Remote(1));
  EXPECT_EQ(names.Here(Remote(1)), Remote(1));
}

TEST(RemoteNames, RN2_AValueIsAskedForOnce) {
  RemoteNames names(kSelf);
  names.StandFor(Own(1), Remote(1));
  EXPECT_TRUE(names.Asleep(Own(1)));
  EXPECT_EQ(names.Rouse(Own(1)), Remote(1));
  EXPECT_FALSE(names.Asleep(Own(1)));
  EXPECT_EQ(names.Rouse(Own(1)), std::nullopt);
  names.StandFor(Life(Own(2)), Life(Remote(2)));
  EXPECT_FALSE(names.Asleep(Life(Own(2))));
  EXPECT_EQ(names.Rouse(Life(Own(2))), std::nullopt) << "a life has no value";
  names.Call(Beside(3), Remote(3));
  EXPECT_EQ(names.Rouse(Beside(3)), std::nullopt) << "its owner on this host is asked";
}

TEST(RemoteNames, RN3_WhatWasLostStaysLost) {
  RemoteNames names(kSelf);
  names.StandFor(Own(1), Remote(1));
  EXPECT_FALSE(names.Lost(Own(1)));
  names.Lose(Own(1));
  EXPECT_TRUE(names.Lost(Own(1)));
  names.StandFor(Own(2), Remote(1));
  EXPECT_FALSE(names.Lost(names.Here(Remote(1)))) << "another one follows";
  names.Lose(Own(3));
  EXPECT_FALSE(names.Lost(Own(3))) << "it is no stand-in";
}

TEST(RemoteNames, RN4_WhoGaveALifeHearsOfTheFirstAndTheLast) {
  RemoteNames names(kSelf);
  const store::ObjectId stand_in = Life(Own(1));
  names.StandFor(stand_in, Life(Remote(1)));
  EXPECT_EQ(names.LentOn(stand_in, true), Tell::kSource);
  EXPECT_EQ(names.LentOn(stand_in, true), Tell::kNobody);
  EXPECT_EQ(names.LentOn(stand_in, false), Tell::kNobody);
  EXPECT_EQ(names.LentOn(stand_in, false), Tell::kSource);
  EXPECT_EQ(names.LentOn(stand_in, false), Tell::kNobody) << "nobody has it";
  EXPECT_EQ(names.LentOn(Life(Beside(1)), true), Tell::kOwner);
  EXPECT_EQ(names.LentOn(Life(Beside(1)), false), Tell::kOwner);
  EXPECT_EQ(names.LentOn(Life(Own(9)), true), Tell::kNobody) << "it is this process's own";
  EXPECT_EQ(names.LentOn(Beside(2), true), Tell::kNobody) << "it is no life";
}

TEST(RemoteNames, RN5_BorrowersOfThisHostCountAsOne) {
  RemoteNames names(kSelf);
  const store::ObjectId stand_in = Life(Own(1));
  names.StandFor(stand_in, Life(Remote(1)));
  EXPECT_EQ(names.Borrowed(stand_in, true), Tell::kSource);
  EXPECT_EQ(names.Borrowed(stand_in, true), Tell::kNobody) << "a second one borrows it";
  EXPECT_EQ(names.LentOn(stand_in, true), Tell::kNobody) << "a host beside them";
  EXPECT_EQ(names.Borrowed(stand_in, false), Tell::kNobody);
  EXPECT_EQ(names.Borrowed(stand_in, false), Tell::kNobody);
  EXPECT_EQ(names.LentOn(stand_in, false), Tell::kSource);
  EXPECT_EQ(names.Borrowed(Life(Own(2)), true), Tell::kNobody) << "it is this process's own";
}

TEST(RemoteNames, RN6_OneHandleForEachWhoHandsALifeOn) {
  RemoteNames names(kSelf);
  const store::ObjectId life = Life(Own(1));
  EXPECT_EQ(names.HandedOn(kNeighbour, life, true, /*borrows=*/false), Handle::kNone);
  EXPECT_EQ(names.HandedOn(kNeighbour, life, true, /*borrows=*/true), Handle::kAdd);
  EXPECT_EQ(names.HandedOn(kNeighbour, life, true, /*borrows=*/true), Handle::kNone);
  EXPECT_EQ(names.HandedOn(kElsewhere, life, true, /*borrows=*/true), Handle::kAdd);
  EXPECT_EQ(names.HandedOn(kNeighbour, life, false, /*borrows=*/false), Handle::kDrop)
      << "it borrows it no more";
  EXPECT_EQ(names.HandedOn(kNeighbour, life, false, /*borrows=*/true), Handle::kNone);
  EXPECT_EQ(names.HandedOn(kElsewhere, life, false, /*borrows=*/true), Handle::kDrop);
  EXPECT_EQ(names.HandedOn(kNeighbour, Own(1), true, /*borrows=*/true), Handle::kNone)
      << "it is no life";
  EXPECT_EQ(names.HandedOn(kNeighbour, Life(Beside(1)), true, /*borrows=*/true), Handle::kNone)
      << "it is not its own";
}

TEST(RemoteNames, RN7_NothingIsKeptOfWhatIsForgotten) {
  RemoteNames names(kSelf);
  names.StandFor(Life(Own(1)), Life(Remote(1)));
  names.StandFor(Own(2), Remote(2));
  names.Call(Beside(3), Remote(3));
  names.LentOn(Life(Own(1)), true);
  names.Borrowed(Life(Own(1)), true);
  names.LentOn(Life(Beside(4)), true);
  EXPECT_EQ(names.Forget(Life(Own(1))), Life(Remote(1)));
  EXPECT_EQ(names.Forget(Own(2)), Remote(2));
  EXPECT_EQ(names.Forget(Beside(3)), std::nullopt) << "it has no source";
  EXPECT_EQ(names.Forget(Life(Beside(4))), std::nullopt);
  EXPECT_EQ(names.Forget(Own(5)), std::nullopt);
  EXPECT_EQ(names.size(), 0u);
}

/// The rules said once more, as plainly as can be.
struct PlainNames {
  struct Known {
    std::optional<store::ObjectId> name;
    bool stands_in = false;
    bool asleep = false;
    bool lost = false;
    std::size_t lent = 0;
    bool beside = false;
  };
  std::map<store::ObjectId, Known> known;
  std::map<store::ObjectId, std::set<ProcessId>> handed_on;

  std::map<store::ObjectId, store::ObjectId> latest;  // latest object with a name, if it is not
                                                      // over

  store::ObjectId Here(const store::ObjectId& name) const {
    const auto found = latest.find(name);
    return found != latest.end() ? found->second : name;
  }
  std::size_t HeldBy(const store::ObjectId& id) const {
    const auto found = known.find(id);
    return found == known.end() ? 0 : found->second.lent + (found->second.beside ? 1 : 0);
  }
  Tell After(const store::ObjectId& id, std::size_t before) const {
    const std::size_t now = HeldBy(id);
    if ((before == 0) == (now == 0)) return Tell::kNobody;
    return known.at(id).stands_in ? Tell::kSource : Tell::kOwner;
  }
};

class RemoteNamesRun : public ::testing::TestWithParam<unsigned> {
 protected:
  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }
  bool Coin() { return Pick(2) == 0; }
  store::ObjectId SomeName() { return Coin() ? Remote(Pick(6)) : Life(Remote(Pick(6))); }
  store::ObjectId SomeId() {
    const store::ObjectId id = Coin() ? Own(Pick(8)) : Beside(Pick(8));
    return Coin() ? id : Life(id);
  }

  void Name() {
    const store::ObjectId name = SomeName();
    store::ObjectId id = Coin() ? Own(Pick(8)) : Beside(Pick(8));
    if (store::IsLife(name)) id = Life(id);
    PlainNames::Known& known = model_.known[id];
    if (known.name) return;  // a number is used once
    known.name = name;
    model_.latest[name] = id;
    if (id.owner == kSelf) {
      known.stands_in = true;
      known.asleep = !store::IsLife(name);
      names_.StandFor(id, name);
    } else {
      names_.Call(id, name);
    }
  }

  void Lend(const store::ObjectId& id, bool lent) {
    const auto found = model_.known.find(id);
    const bool stands_in = found != model_.known.end() && found->second.stands_in;
    const std::size_t before = model_.HeldBy(id);
    if (store::IsLife(id) && (id.owner != kSelf || stands_in)) {
      PlainNames::Known& known = model_.known[id];
      if (!lent && known.lent == 0) return;  // nobody takes back what was not given
      known.lent = lent ? known.lent + 1 : known.lent - 1;
    }
    const Tell expected = model_.known.count(id) != 0 ? model_.After(id, before) : Tell::kNobody;
    EXPECT_EQ(names_.LentOn(id, lent), expected) << id.Text();
  }

  void Borrow(const store::ObjectId& id, bool borrowed) {
    const auto found = model_.known.find(id);
    if (found == model_.known.end() || !found->second.stands_in || !store::IsLife(id)) {
      EXPECT_EQ(names_.Borrowed(id, borrowed), Tell::kNobody);
      return;
    }
    const std::size_t before = model_.HeldBy(id);
    found->second.beside = borrowed;
    EXPECT_EQ(names_.Borrowed(id, borrowed), model_.After(id, before)) << id.Text();
  }

  void HandOn(const store::ObjectId& id, bool lent, bool borrows) {
    const ProcessId borrower = Coin() ? kNeighbour : kElsewhere;
    std::set<ProcessId>& holders = model_.handed_on[id];
    Handle expected = Handle::kNone;
    if (id.owner == kSelf && store::IsLife(id)) {
      if (!lent && holders.erase(borrower) != 0) expected = Handle::kDrop;
      if (lent && borrows && holders.insert(borrower).second) expected = Handle::kAdd;
    }
    EXPECT_EQ(names_.HandedOn(borrower, id, lent, borrows), expected);
  }

  void Forget(const store::ObjectId& id) {
    const auto found = model_.known.find(id);
    std::optional<store::ObjectId> expected;
    if (found != model_.known.end()) {
      const PlainNames::Known& known = found->second;
      if (known.stands_in) expected = known.name;
      if (known.name && model_.latest.count(*known.name) != 0 &&
          model_.latest.at(*known.name) == id)
        model_.latest.erase(*known.name);
      model_.known.erase(found);
    }
    EXPECT_EQ(names_.Forget(id), expected) << id.Text();
  }

  void AskAll() {
    for (std::uint64_t number = 0; number < 8; ++number) {
      for (const store::ObjectId& name : {Remote(number), Life(Remote(number))}) {
        EXPECT_EQ(names_.Here(name), model_.Here(name));
      }
      for (const store::ObjectId& plain : {Own(number), Beside(number)}) {
        for (const store::ObjectId& id : {plain, Life(plain)}) Compare(id);
      }
    }
  }

  void Compare(const store::ObjectId& id) {
    const auto found = model_.known.find(id);
    const PlainNames::Known known =
        found != model_.known.end() ? found->second : PlainNames::Known();
    EXPECT_EQ(names_.NameOf(id), known.name.value_or(id));
    EXPECT_EQ(names_.StandsIn(id), known.stands_in);
    EXPECT_EQ(names_.Asleep(id), known.stands_in && known.asleep);
    EXPECT_EQ(names_.Lost(id), known.lost);
  }

  RemoteNames names_{kSelf};
  PlainNames model_;
  std::mt19937 random_{GetParam()};
};

TEST_P(RemoteNamesRun, RN1_To_RN7_AgreeWithThePlainModel) {
  for (int step = 0; step < 1000 && !HasFailure(); ++step) {
    const store::ObjectId id = SomeId();
    switch (Pick(8)) {
      case 0:
      case 1:
        Name();
        break;
      case 2: {
        const auto found = model_.known.find(id);
        const bool asks =
            found != model_.known.end() && found->second.stands_in && found->second.asleep;
        EXPECT_EQ(names_.Rouse(id), asks ? found->second.name : std::nullopt);
        if (asks) found->second.asleep = false;
        break;
      }
      case 3: {
        names_.Lose(id);
        const auto found = model_.known.find(id);
        if (found != model_.known.end() && found->second.stands_in) found->second.lost = true;
        break;
      }
      case 4:
        Lend(id, Coin());
        break;
      case 5:
        Borrow(id, Coin());
        break;
      case 6:
        HandOn(id, Coin(), Coin());
        break;
      default:
        Forget(id);
    }
    AskAll();
  }
  for (std::uint64_t number = 0; number < 8; ++number) {
    for (const store::ObjectId& plain : {Own(number), Beside(number)}) {
      Forget(plain);
      Forget(Life(plain));
    }
  }
  EXPECT_EQ(names_.size(), 0u) << "RN-7";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RemoteNamesRun, ::testing::Range(1u, 21u));

}  // namespace
}  // namespace troupe::actors
