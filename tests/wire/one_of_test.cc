// Method: every kind, filled with random values, goes through each thing that a value of one of
// many kinds does; the sanitizer builds see what is freed twice or never.
#include "runtime/wire/one_of.h"

#include <gtest/gtest.h>

#include <typeinfo>
#include <utility>

#include "runtime/wire/inspect.h"

namespace troupe::wire {
namespace {

TEST(OneOf, EveryKindCopiesMovesAndCompares) {
  for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) {
    Prng random(kind + 1);
    const Body one = RandomBody(kind, random);
    Body copy = one;
    EXPECT_EQ(copy, one) << NameOf(one);
    Body moved = std::move(copy);
    EXPECT_EQ(moved, one) << NameOf(one);
    moved = Body::OfKind((kind + 1) % std::size(kBodyNames));
    EXPECT_NE(moved, one) << NameOf(one);
    moved = one;
    EXPECT_EQ(moved, one) << NameOf(one);
    const Body& itself = moved;
    moved = itself;
    EXPECT_EQ(moved, one) << NameOf(one);
  }
}

TEST(OneOf, AnotherKindIsNotThere) {
  Body body = Heartbeat();
  EXPECT_TRUE(Holds<Heartbeat>(body));
  EXPECT_FALSE(Holds<Hello>(body));
  EXPECT_EQ(GetIf<Hello>(&body), nullptr);
  EXPECT_THROW(Get<Hello>(body), std::bad_cast);
}

TEST(OneOf, EmplaceForgetsWhatWasThere) {
  Body body = Refused{};
  Get<Refused>(body).text = "no";
  body.Emplace<Heartbeat>().sequence = 7;
  EXPECT_EQ(Get<Heartbeat>(body).sequence, 7u);
  EXPECT_EQ(body.Emplace<Refused>(), Refused());
}

TEST(OneOf, VisitFindsTheKind) {
  for (std::size_t kind = 0; kind < std::size(kEventBodyNames); ++kind) {
    const EventBody body = EventBody::OfKind(kind);
    EXPECT_TRUE(Visit(
        [&](const auto& one) { return static_cast<const void*>(&one) == body.Bytes(); }, body));
  }
}

}  // namespace
}  // namespace troupe::wire
